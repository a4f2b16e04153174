import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { CONFIG, Health, Logger } from '@isthmus/chassis';
import { Bus } from '@isthmus/messaging';
import { CONTRACTS, type Description, mergeDescriptions, WopError } from '@isthmus/protocol';
import type { Config } from '../config.js';
import { type CachedDocument, cachedDocument } from './cached-document.js';
import { ownDescription } from './own-description.js';

/** Until every service was heard once there is nothing to publish, so it is asked for more often. */
const FIRST_RETRY_MS = 250;
const DESCRIBERS = Object.values(CONTRACTS).map(({ describe }) => describe);

/**
 * The discovery document, out of what each service says of itself. The last word of a service that is away still stands: clients
 * plan by this document, and a restart is not a change of what the host does. (rulings, "Wire")
 */
@Injectable()
export class Discovery implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly heard = new Map<string, Description>();
  private cached: CachedDocument | undefined;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(
    private readonly bus: Bus,
    private readonly logger: Logger,
    private readonly health: Health,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  onApplicationBootstrap(): void {
    this.health.add('discovery', () => void this.document());
    void this.refresh();
  }

  onModuleDestroy(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  /** @throws WopError `service_unavailable` until every service was heard */
  document(): CachedDocument {
    if (!this.cached) throw new WopError('service_unavailable', 'The host is starting: not every part of it has said yet what it does.');
    return this.cached;
  }

  private async refresh(): Promise<void> {
    await Promise.all(DESCRIBERS.map((describe) => this.hear(describe)));
    if (this.heard.size === DESCRIBERS.length) {
      this.cached = cachedDocument(mergeDescriptions([ownDescription(this.config), ...this.heard.values()]));
    }
    if (this.isStopped) return;
    this.timer = setTimeout(() => void this.refresh(), this.cached ? this.config.DISCOVERY_REFRESH_MS : FIRST_RETRY_MS);
  }

  private async hear(describe: (typeof DESCRIBERS)[number]): Promise<void> {
    try {
      this.heard.set(describe.service, await this.bus.call(describe, {}));
    } catch (error) {
      this.logger.debug('a service did not say what it does', { service: describe.service, error: (error as Error).message });
    }
  }
}
