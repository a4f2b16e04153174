import { createInbox, type Msg, type NatsConnection } from '@nats-io/transport-node';

export type Inbox = { readonly subject: string; readonly close: () => void };
type Handlers = { readonly message: (message: Msg) => void; readonly lost: (error?: Error) => void };

/**
 * Private inboxes of one connection under one wildcard subscription: an exchange costs no SUB and UNSUB, and an inbox is
 * ready the moment it is opened. A connection that closes for good is told to every open inbox.
 */
export class Inboxes {
  private static readonly of = new WeakMap<NatsConnection, Inboxes>();
  private readonly prefix = createInbox();
  private readonly open = new Map<string, Handlers>();
  private next = 0;

  static on(connection: NatsConnection): Inboxes {
    const known = Inboxes.of.get(connection);
    if (known) return known;
    const made = new Inboxes(connection);
    Inboxes.of.set(connection, made);
    return made;
  }

  private constructor(connection: NatsConnection) {
    const start = this.prefix.length + 1;
    connection.subscribe(`${this.prefix}.*`, {
      callback: (_error, message) => this.open.get(message.subject.slice(start))?.message(message),
    });
    void connection.closed().then((error) => {
      for (const handlers of [...this.open.values()]) handlers.lost(error instanceof Error ? error : undefined);
    });
  }

  claim(handlers: Handlers): Inbox {
    const token = (this.next++).toString(36);
    this.open.set(token, handlers);
    return { subject: `${this.prefix}.${token}`, close: () => this.open.delete(token) };
  }
}
