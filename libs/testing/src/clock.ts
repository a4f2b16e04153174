import { Clock } from '@isthmus/chassis';

/** Time that passes when the test says so. */
export class FakeClock extends Clock {
  #now: number;
  #elapsed = 0;

  constructor(start = Date.parse('2026-07-28T12:00:00Z')) {
    super();
    this.#now = start;
  }

  override now(): number {
    return this.#now;
  }

  override monotonic(): number {
    return this.#elapsed;
  }

  advance(ms: number): void {
    this.#now += ms;
    this.#elapsed += ms;
  }

  /** As if somebody set the clock: nothing has elapsed. */
  set(now: number): void {
    this.#now = now;
  }
}
