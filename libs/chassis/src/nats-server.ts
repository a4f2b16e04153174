import { type NatsOptions, ServerNats } from '@nestjs/microservices';

type Options = NonNullable<NatsOptions['options']>;
/** What we need of the connection that the transport makes. */
type Connection = { subscribe(...args: unknown[]): Subscription; flush(): Promise<void>; isClosed(): boolean };
type Subscription = { drain(): Promise<void> };

/**
 * Nest's NATS transport, with an end that waits for what it has begun: subscriptions go first, so that other replicas get the
 * next messages, then the answers of the running handlers go out. (Nest's own grace period sleeps its whole length.)
 */
export class DrainingNats extends ServerNats {
  #connection: Connection | undefined;
  #subscriptions: Subscription[] = [];
  #inFlight = 0;
  #whenIdle: (() => void) | undefined;

  constructor(options: Options) {
    super({ maxReconnectAttempts: -1, ...options });
    this.setOnProcessingStartHook((_transport, _context, work) => {
      this.#inFlight += 1;
      return work();
    });
    // The answer of a handler is published in the tick after its end.
    this.setOnProcessingEndHook(() => setImmediate(() => this.#ended()));
  }

  override bindEvents(client: Connection): void {
    this.#connection = client;
    super.bindEvents({
      subscribe: (...args: unknown[]) => {
        const subscription = client.subscribe(...args);
        this.#subscriptions.push(subscription);
        return subscription;
      },
    });
  }

  /** Takes no more messages and resolves when every answer is out. */
  async drain(): Promise<void> {
    const connection = this.#connection;
    // A connection that is away cannot be drained: what is in flight is lost with it either way.
    if (!connection || connection.isClosed()) return;
    await Promise.all(this.#subscriptions.map((subscription) => subscription.drain()));
    if (this.#inFlight > 0) {
      await new Promise<void>((resolve) => {
        this.#whenIdle = resolve;
      });
    }
    await connection.flush();
  }

  #ended(): void {
    this.#inFlight -= 1;
    if (this.#inFlight === 0) this.#whenIdle?.();
  }
}
