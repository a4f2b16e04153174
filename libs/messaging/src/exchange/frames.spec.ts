import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  decodeCount,
  decodeFrame,
  decodeHeaded,
  encodeCount,
  encodeFrame,
  encodeHeaded,
  type FrameKind,
  PIECE_BYTES,
  pieces,
} from './frames.js';

const KINDS: FrameKind[] = ['accept', 'head', 'data', 'end', 'whole', 'fail', 'beat', 'credit', 'cancel'];
const u32 = fc.integer({ min: 0, max: 0xffffffff });
const bytes = fc.uint8Array({ maxLength: 300 });

describe('frames', () => {
  it('come out as they went in', () => {
    fc.assert(
      fc.property(fc.constantFrom(...KINDS), u32, bytes, (kind, number, payload) => {
        expect(decodeFrame(encodeFrame(kind, number, payload))).toEqual({ kind, number, payload });
      }),
    );
  });

  it('are read from any place in a larger buffer', () => {
    fc.assert(
      fc.property(bytes, bytes, u32, (before, payload, number) => {
        const buffer = Buffer.concat([before, encodeFrame('data', number, payload)]);
        expect(decodeFrame(buffer.subarray(before.length))?.number).toBe(number);
      }),
    );
  });

  it('are refused when they are too short or of no known kind', () => {
    expect(decodeFrame(new Uint8Array(4))).toBeUndefined();
    expect(decodeFrame(new Uint8Array([200, 0, 0, 0, 0]))).toBeUndefined();
  });

  it('keep a head and its body apart, whatever is in them', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string({ unit: 'binary' }), fc.string())), bytes, (headers, body) => {
        const head = { status: 200, headers };
        expect(decodeHeaded(encodeHeaded(head, body))).toEqual({ head, body: Buffer.from(body) });
      }),
    );
  });

  it('count bytes in full', () => {
    fc.assert(fc.property(u32, (count) => expect(decodeCount(encodeCount(count))).toBe(count)));
  });
});

describe('pieces', () => {
  it('make up the whole in order and none is too large', () => {
    const whole = Uint8Array.from({ length: PIECE_BYTES * 2 + 17 }, (_, at) => at % 251);
    const parts = [...pieces(whole)];
    expect(parts.map((part) => part.length)).toEqual([PIECE_BYTES, PIECE_BYTES, 17]);
    expect(Buffer.concat(parts).equals(Buffer.from(whole))).toBe(true);
  });
});
