import { randomBytes } from 'node:crypto';
import { v7 } from 'uuid';

/** Where names of new things come from. */
export abstract class Ids {
  /** A UUID of version 7: sorts by time of creation, so that indexes grow at one end. */
  abstract run(): string;
  /** Unguessable, safe in URLs and NATS subjects. */
  abstract opaque(bytes?: number): string;
}

export class RandomIds extends Ids {
  override run(): string {
    return v7();
  }

  override opaque(bytes = 24): string {
    return randomBytes(bytes).toString('base64url');
  }
}
