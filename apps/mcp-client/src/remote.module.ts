import { Clock, CONFIG, Logger } from '@isthmus/chassis';
import { Egress } from '@isthmus/egress';
import { Bell } from '@isthmus/messaging';
import { BELLS } from '@isthmus/protocol';
import { Inject, Injectable, Module, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Breakers } from './breakers.js';
import { type Config, repeatUnknownOf } from './config.js';
import { Connections } from './connections.js';
import { InFlight } from './in-flight.js';
import { remoteFetch } from './remote-fetch.js';
import { RemoteTools } from './remote-tools.js';

/** Hears which calls to give up, and closes what is open at the end. */
@Injectable()
class RemoteLife implements OnApplicationBootstrap, OnModuleDestroy {
  #stopListening: () => void = () => undefined;

  constructor(
    @Inject(Bell) private readonly bell: Bell,
    @Inject(InFlight) private readonly inFlight: InFlight,
    @Inject(Connections) private readonly connections: Connections,
    @Inject(Egress) private readonly egress: Egress,
  ) {}

  onApplicationBootstrap(): void {
    this.#stopListening = this.bell.listen(BELLS.abandon.all, (subject) => this.inFlight.abandon(subject));
  }

  async onModuleDestroy(): Promise<void> {
    this.#stopListening();
    await this.connections.close();
    await this.egress.close();
  }
}

@Module({
  providers: [
    InFlight,
    RemoteLife,
    { provide: Egress, inject: [CONFIG, Logger], useFactory: (config: Config, logger: Logger) => new Egress(config.EGRESS_ALLOW, logger) },
    { provide: Breakers, inject: [Clock], useFactory: (clock: Clock) => new Breakers(clock) },
    {
      provide: Connections,
      inject: [CONFIG, Egress, Breakers, Clock],
      useFactory: (config: Config, egress: Egress, breakers: Breakers, clock: Clock) =>
        new Connections(remoteFetch(egress, config.MAX_RESULT_BYTES), breakers, clock),
    },
    {
      provide: RemoteTools,
      inject: [CONFIG, Connections, Breakers, InFlight, Clock],
      useFactory: (config: Config, connections: Connections, breakers: Breakers, inFlight: InFlight, clock: Clock) =>
        new RemoteTools(connections, breakers, inFlight, clock, {
          repeatUnknown: repeatUnknownOf(config),
          maxResultBytes: config.MAX_RESULT_BYTES,
        }),
    },
  ],
  exports: [Egress, RemoteTools],
})
export class RemoteModule {}
