import type { Clock } from '@isthmus/chassis';
import { LRUCache } from 'lru-cache';
import { type BreakerState, CLOSED, failed, pass } from './breaker.js';

/** The breakers of the origins that failed lately; an origin that answers needs none. */
export class Breakers {
  readonly #states = new LRUCache<string, BreakerState>({ max: 10_000 });

  constructor(private readonly clock: Clock) {}

  /** May a request go there now? No while the origin is left alone. */
  admits(origin: string): boolean {
    const { passes, state } = pass(this.#states.get(origin) ?? CLOSED, this.clock.monotonic());
    if (state !== CLOSED) this.#states.set(origin, state);
    return passes;
  }

  failed(origin: string): void {
    this.#states.set(origin, failed(this.#states.get(origin) ?? CLOSED, this.clock.monotonic()));
  }

  answered(origin: string): void {
    this.#states.delete(origin);
  }
}
