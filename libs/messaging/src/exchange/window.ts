/** What a sender may still send: it waits here until the reader has taken something. One sender at a time. */
export class SendWindow {
  private waiting: { resolve: () => void; reject: (error: unknown) => void } | undefined;
  private closed: { readonly because: unknown } | undefined;

  constructor(private free: number) {}

  /** Waits until `bytes` fit, and uses them up. A piece is never larger than the whole window. */
  async take(bytes: number): Promise<void> {
    while (!this.closed && this.free < bytes) {
      await new Promise<void>((resolve, reject) => {
        this.waiting = { resolve, reject };
      });
    }
    if (this.closed) throw this.closed.because;
    this.free -= bytes;
  }

  give(bytes: number): void {
    this.free += bytes;
    this.wake()?.resolve();
  }

  close(because: unknown): void {
    this.closed ??= { because };
    this.wake()?.reject(because);
  }

  private wake() {
    const waiting = this.waiting;
    this.waiting = undefined;
    return waiting;
  }
}

/**
 * What has arrived and is not yet taken, as an async iterable for one reader. Tells the sender how much was taken, in few
 * messages; a sender that overruns the window is a fault, so memory is bounded whatever the far side does.
 */
export class Inflow implements AsyncIterable<Uint8Array> {
  private readonly chunks: Uint8Array[] = [];
  private held = 0;
  private owed = 0;
  private ended = false;
  private failure: { readonly because: unknown } | undefined;
  private wake: (() => void) | undefined;

  constructor(
    private readonly size: number,
    private readonly taken: (bytes: number) => void,
    private readonly abandoned: () => void,
  ) {}

  /** @returns false when the sender sent more than it was allowed to */
  push(chunk: Uint8Array): boolean {
    if (this.ended || this.failure) return true;
    if (this.held + this.owed + chunk.length > this.size) return false;
    this.held += chunk.length;
    this.chunks.push(chunk);
    this.rouse();
    return true;
  }

  end(): void {
    this.ended = true;
    this.rouse();
  }

  /** What has arrived before is dropped: half an answer is no answer. */
  fail(because: unknown): void {
    if (this.ended) return;
    this.failure ??= { because };
    this.chunks.length = 0;
    this.rouse();
  }

  /** By hand, because a generator that was never started does not hear that its reader went away. */
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined> {
    let last = 0;
    const over = { done: true, value: undefined } as const;
    const next = async (): Promise<IteratorResult<Uint8Array, undefined>> => {
      this.settle(last);
      last = 0;
      for (;;) {
        if (this.failure) throw this.failure.because;
        const chunk = this.chunks.shift();
        if (chunk) {
          last = chunk.length;
          return { done: false, value: chunk };
        }
        if (this.ended) return over;
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
      }
    };
    const stop = async () => {
      if (!(this.ended && this.chunks.length === 0) && !this.failure) this.abandoned();
      return over;
    };
    return { next, return: stop };
  }

  private settle(bytes: number): void {
    if (bytes === 0) return;
    this.held -= bytes;
    this.owed += bytes;
    if (this.ended || this.owed < this.size / 4) return;
    const owed = this.owed;
    this.owed = 0;
    this.taken(owed);
  }

  private rouse(): void {
    const wake = this.wake;
    this.wake = undefined;
    wake?.();
  }
}
