import type { Page } from './run-reader.js';
import type { Client } from './run-watch.js';

/** A watcher that waits for one thing to happen to a run, whatever it is, and reads nothing itself. */
export class News implements Client {
  #tell: () => void = () => undefined;
  /** Settles when the log has something at or after `next`, when it may have become unreadable, or when `signal` fires. */
  readonly heard: Promise<void>;

  constructor(
    private readonly next: number,
    signal: AbortSignal,
  ) {
    this.heard = new Promise((resolve) => {
      this.#tell = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
      if (signal.aborted) resolve();
    });
  }

  offer(page: Page): void {
    if (page.next > this.next || page.isOver) this.#tell();
  }
  abandon(): void {
    this.#tell();
  }
  recheck(): void {
    this.#tell();
  }
  end(): void {
    this.#tell();
  }
}
