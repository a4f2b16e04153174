import { batchFrame, type Streamed } from './sse.js';

/** Gathers events for a while and sends them in one frame. (stream-modes.md, aggregation hint) */
export class Batches {
  #held: Streamed[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly bufferMs: number,
    private readonly send: (text: string) => void,
  ) {}

  /** @param isUrgent nothing may wait any longer */
  add(events: readonly Streamed[], isUrgent: boolean): void {
    this.#held.push(...events);
    if (isUrgent) this.flush();
    else if (this.#held.length > 0) this.#timer ??= setTimeout(() => this.flush(), this.bufferMs);
  }

  flush(): void {
    this.stop();
    if (this.#held.length === 0) return;
    const held = this.#held;
    this.#held = [];
    this.send(batchFrame(held));
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
