const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/**
 * Counts what of an HTTP body would have to be held at once: all of a document, or one event of an event stream (events are
 * handed on and forgotten; an empty line ends one).
 */
export class ByteCount {
  #held = 0;
  #atLineStart = true;

  constructor(private readonly isEventStream: boolean) {}

  /** @returns the bytes held at most while taking `chunk` in */
  add(chunk: Uint8Array): number {
    if (!this.isEventStream) {
      this.#held += chunk.byteLength;
      return this.#held;
    }
    let most = 0;
    for (const byte of chunk) {
      this.#held += 1;
      if (this.#held > most) most = this.#held;
      if (byte === CARRIAGE_RETURN) continue;
      if (byte === LINE_FEED && this.#atLineStart) this.#held = 0;
      this.#atLineStart = byte === LINE_FEED;
    }
    return most;
  }
}

/** Passes a body on until it holds more than `limit` bytes; then it fails with what `onExcess` makes and the rest is never read. */
export function byteBound(limit: number, isEventStream: boolean, onExcess: () => Error): TransformStream<Uint8Array, Uint8Array> {
  const count = new ByteCount(isEventStream);
  return new TransformStream({
    transform(chunk, controller) {
      if (count.add(chunk) > limit) controller.error(onExcess());
      else controller.enqueue(chunk);
    },
  });
}
