import { Health, natsAddress } from '@isthmus/chassis';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { Inject, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';

export const MESSAGING_OPTIONS = Symbol('messaging options');
export type MessagingOptions = {
  readonly service: string;
  readonly natsUrl: string;
  /** Does this process check passports? authz does not: it makes them, and its contracts are internal. */
  readonly passports: boolean;
};

/**
 * The process's connections. Exchanges have one of their own, so that a slow consumer of a big body cannot cut control
 * traffic. Both reconnect for ever: a client that gives up leaves a service that is up but deaf.
 */
@Injectable()
export class Nats implements OnModuleInit, OnModuleDestroy {
  private control: NatsConnection | undefined;
  private exchanges: Promise<NatsConnection> | undefined;

  constructor(
    @Inject(MESSAGING_OPTIONS) private readonly options: MessagingOptions,
    private readonly health: Health,
  ) {}

  async onModuleInit(): Promise<void> {
    this.control = await this.open('control');
    this.health.add('nats', () => {
      if (!this.isConnected) throw new Error('not connected to NATS');
    });
  }

  connection(): NatsConnection {
    if (!this.control) throw new Error('NATS is used before the module was initialised');
    return this.control;
  }

  /** The connection for exchanges, opened at first use. */
  tunnel(): Promise<NatsConnection> {
    this.exchanges ??= this.open('exchanges');
    return this.exchanges;
  }

  get isConnected(): boolean {
    return this.control !== undefined && !this.control.isClosed() && this.connected;
  }
  private connected = false;

  private async open(purpose: string): Promise<NatsConnection> {
    const connection = await connect({
      ...natsAddress(this.options.natsUrl),
      name: `${this.options.service} ${purpose}`,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
      waitOnFirstConnect: true,
      // An error with a stack for every request, just in case, is 6 % of a busy gateway.
      noAsyncTraces: true,
      pingInterval: 5_000,
      maxPingOut: 2,
    });
    if (purpose === 'control') {
      this.connected = true;
      void this.follow(connection);
    }
    return connection;
  }

  private async follow(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type === 'disconnect' || status.type === 'close') this.connected = false;
      if (status.type === 'reconnect') this.connected = true;
    }
  }

  async onModuleDestroy(): Promise<void> {
    const open = [this.control, await (this.exchanges ?? Promise.resolve(undefined)).catch(() => undefined)];
    await Promise.all(open.map(async (connection) => connection?.drain().catch(() => undefined)));
  }
}
