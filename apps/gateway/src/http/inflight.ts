import { Inject, Injectable } from '@nestjs/common';
import { CONFIG } from '@isthmus/chassis';
import { WopError } from '@isthmus/protocol';
import type { Config } from '../config.js';

/** What a 503 for want of room asks to wait, and what the discovery document says it asks. */
export const RETRY_AFTER_S = 1;

/**
 * The work this gateway holds at a time: open event streams, and requests that start runs. Runs themselves, parked ones above all,
 * cost it nothing and are not counted. When it is full nothing new starts; who watches is always let in. (production-profile.md)
 */
@Injectable()
export class Inflight {
  #held = 0;
  constructor(@Inject(CONFIG) private readonly config: Pick<Config, 'MAX_INFLIGHT'>) {}

  get held(): number {
    return this.#held;
  }

  /** @returns gives the place back; calling it again does nothing */
  hold(): () => void {
    this.#held += 1;
    let isHeld = true;
    return () => {
      if (isHeld) this.#held -= 1;
      isHeld = false;
    };
  }

  /** @throws WopError `service_unavailable` when there is no room for work that starts something */
  async during<T>(work: () => Promise<T>): Promise<T> {
    if (this.#held >= this.config.MAX_INFLIGHT)
      throw new WopError('service_unavailable', 'This host has as much work in flight as it takes. Try again.', {
        retryAfter: RETRY_AFTER_S,
      });
    const leave = this.hold();
    try {
      return await work();
    } finally {
      leave();
    }
  }
}
