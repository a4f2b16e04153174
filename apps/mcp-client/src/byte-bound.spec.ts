import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { byteBound, ByteCount } from './byte-bound.js';

const bytes = (text: string) => new TextEncoder().encode(text);

describe('counting what has to be held', () => {
  it('is all of a document', () => {
    const count = new ByteCount(false);
    expect(['ab', 'c\n\n', 'd'].map((part) => count.add(bytes(part)))).toEqual([2, 5, 6]);
  });

  it('is one event of a stream, wherever the network cuts it', () => {
    const events = fc.array(
      fc.string({ minLength: 1 }).map((text) => `data: ${text.replace(/[\r\n]/g, '_')}`),
      { minLength: 1 },
    );
    fc.assert(
      fc.property(events, fc.constantFrom('\n\n', '\r\n\r\n'), fc.integer({ min: 1, max: 7 }), (list, end, step) => {
        const stream = bytes(list.map((event) => event + end).join(''));
        const longest = Math.max(...list.map((event) => bytes(event + end).byteLength));
        const count = new ByteCount(true);
        const seen: number[] = [];
        for (let at = 0; at < stream.byteLength; at += step) seen.push(count.add(stream.subarray(at, at + step)));
        expect(Math.max(...seen)).toBe(longest);
      }),
    );
  });
});

describe('a bounded body', () => {
  const through = async (parts: string[], limit: number, isEventStream: boolean) => {
    let pulled = 0;
    const source = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const part = parts[pulled++];
        if (part === undefined) controller.close();
        else controller.enqueue(bytes(part));
      },
    });
    const body = source.pipeThrough(byteBound(limit, isEventStream, () => new Error('too large')));
    const text = await new Response(body).text().catch((error: Error) => error.message);
    return { text, pulled };
  };

  it('arrives unaltered below the limit', async () => {
    expect(await through(['12', '345'], 5, false)).toMatchObject({ text: '12345' });
    expect(await through(['a\n\n', 'b\n\n', 'c\n\n'], 3, true)).toMatchObject({ text: 'a\n\nb\n\nc\n\n' });
  });

  it('fails above it, and the rest is never asked for', async () => {
    const { text, pulled } = await through(
      Array.from({ length: 1_000 }, () => '123456'),
      8,
      false,
    );
    expect(text).toBe('too large');
    expect(pulled).toBeLessThan(10);
  });
});
