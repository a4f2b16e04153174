import { WopError } from '@isthmus/protocol';

/** Runs at most `width` tasks at once and lets at most `limit` wait; who comes when it is full is told so at once. (traps.md 22) */
export class BoundedQueue {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(
    private readonly width: number,
    private readonly limit: number,
  ) {}

  async run<T>(task: () => Promise<T>): Promise<T> {
    await this.#turn();
    try {
      return await task();
    } finally {
      this.#leave();
    }
  }

  #turn(): Promise<void> | undefined {
    if (this.#running < this.width) {
      this.#running += 1;
      return undefined;
    }
    if (this.#waiting.length >= this.limit)
      throw new WopError('service_unavailable', 'Too many credentials are being verified; try again.');
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** The place goes straight to the next in line, so that nobody slips in between. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running -= 1;
  }
}
