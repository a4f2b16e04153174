type Reader = ReadableStreamDefaultReader<Uint8Array>;
type Read = Awaited<ReturnType<Reader['read']>>;

/**
 * Parts a stream into what it gives without waiting for more than a turn of the event loop, and the rest. A JSON answer is
 * there at once and needs one frame; an event stream is not and must not be held back.
 * @returns `rest` absent: the stream ended within `limit` bytes
 */
export async function gather(source: Reader, limit: number): Promise<{ ready: Uint8Array[]; rest?: AsyncIterable<Uint8Array> }> {
  const ready: Uint8Array[] = [];
  for (let size = 0; size <= limit; ) {
    const reading = source.read();
    const read = await Promise.race([reading, turn()]);
    if (!read) return { ready, rest: continued(source, reading) };
    if (read.done) return { ready };
    ready.push(read.value);
    size += read.value.length;
  }
  return { ready, rest: continued(source, source.read()) };
}

async function* continued(source: Reader, reading: Promise<Read>): AsyncGenerator<Uint8Array> {
  for (let read = await reading; !read.done; read = await source.read()) yield read.value;
}

const turn = (): Promise<undefined> => new Promise((resolve) => setImmediate(resolve, undefined));
