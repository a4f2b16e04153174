import { Injectable } from '@nestjs/common';
import { Nats } from './nats.js';

/** Content-free notes (`BELLS` in protocol). Ringing never fails and never waits: a lost bell costs a delay, never a fact. */
@Injectable()
export class Bell {
  constructor(private readonly nats: Nats) {}

  ring(subject: string): void {
    const connection = this.nats.connection();
    if (!connection.isClosed()) connection.publish(subject);
  }

  /** Calls `on` with the subject of each ring, wildcards included. @returns stops listening */
  listen(subject: string, on: (subject: string) => void): () => void {
    const subscription = this.nats.connection().subscribe(subject, {
      callback: (error, message) => {
        if (!error) on(message.subject);
      },
    });
    return () => subscription.unsubscribe();
  }
}
