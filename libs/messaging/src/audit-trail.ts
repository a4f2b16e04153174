import { Clock, Logger } from '@isthmus/chassis';
import { authz, type Caller, type Input, type JsonObject } from '@isthmus/protocol';
import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Bus } from './bus.js';

type Entry = Input<typeof authz.recordAudit>['entries'][number];

const FLUSH_MS = 200;
const MAX_BATCH = 200;
/** Beyond this the oldest are dropped and counted: an audit flood must not take the host's memory. */
const MAX_WAITING = 10_000;

/** Reports decisions to authz's audit chain, in batches and off the caller's path. Kept and sent again while authz is away. */
@Injectable()
export class AuditTrail implements OnModuleDestroy {
  private waiting: Entry[] = [];
  private timer: NodeJS.Timeout | undefined;
  private sending: Promise<void> | undefined;
  private isEnding = false;

  constructor(
    private readonly bus: Bus,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** `authorization.decided` with `allowed: false`; the reason stands only here, never on the wire. (RFC 0049) */
  denied(caller: Caller, action: string, resource: string, reason: string): void {
    this.record('authorization.decided', { principal: caller.principal, action, resource, allowed: false, reason }, caller.tenant);
  }

  record(type: string, facts: JsonObject, tenant?: string): void {
    this.waiting.push({ type, facts, at: this.clock.date().toISOString(), ...(tenant !== undefined && { tenant }) });
    if (this.waiting.length > MAX_WAITING) {
      this.waiting.splice(0, MAX_BATCH);
      this.logger.warn('the audit trail overflowed and lost its oldest entries', { lost: MAX_BATCH });
    }
    this.timer ??= setTimeout(() => void this.flush(), FLUSH_MS);
  }

  private flush(): Promise<void> {
    this.timer = undefined;
    this.sending ??= this.send().finally(() => {
      this.sending = undefined;
      if (this.waiting.length > 0 && !this.isEnding) this.timer ??= setTimeout(() => void this.flush(), FLUSH_MS);
    });
    return this.sending;
  }

  private async send(): Promise<void> {
    const entries = this.waiting.splice(0, MAX_BATCH);
    if (entries.length === 0) return;
    try {
      await this.bus.call(authz.recordAudit, { entries });
    } catch (error) {
      this.waiting.unshift(...entries);
      this.logger.warn('audit entries wait for authz', { waiting: this.waiting.length, error: (error as Error).message });
    }
  }

  async onModuleDestroy(): Promise<void> {
    this.isEnding = true;
    clearTimeout(this.timer);
    await this.flush();
  }
}
