import { Clock, CONFIG, Logger } from '@isthmus/chassis';
import { Egress, parseCidrs } from '@isthmus/egress';
import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Breakers } from './breakers.js';
import { type Config, repeatUnknownOf } from './config.js';
import { Connections } from './connections.js';
import { InFlight } from './in-flight.js';
import { remoteFetch } from './remote-fetch.js';
import { RemoteTools } from './remote-tools.js';

const LOOPBACK = parseCidrs('127.0.0.0/8,::1/128') ?? [];

export type Remote = { readonly egress: Egress; readonly connections: Connections; readonly tools: RemoteTools };

/**
 * The same client as that of mounts, with an egress of its own that leads to this machine as well: what a suite starts beside the
 * host is reached through the seam, and through nothing else. Not made unless seams are on. (spec/seams.md §8.3)
 */
@Injectable()
export class SeamRemote implements OnModuleDestroy {
  readonly remote: Remote | undefined;

  constructor(@Inject(CONFIG) config: Config, @Inject(Clock) clock: Clock, @Inject(Logger) logger: Logger) {
    if (!config.OPENWOP_TEST_SEAM_ENABLED) return;
    const egress = new Egress([...config.EGRESS_ALLOW, ...LOOPBACK], logger);
    const breakers = new Breakers(clock);
    const connections = new Connections(remoteFetch(egress, config.MAX_RESULT_BYTES), breakers, clock);
    const tools = new RemoteTools(connections, breakers, new InFlight(), clock, {
      repeatUnknown: repeatUnknownOf(config),
      maxResultBytes: config.MAX_RESULT_BYTES,
    });
    this.remote = { egress, connections, tools };
  }

  async onModuleDestroy(): Promise<void> {
    await this.remote?.connections.close();
    await this.remote?.egress.close();
  }
}
