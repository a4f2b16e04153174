import { describe, expect, it } from '@jest/globals';
import type { Json } from '@isthmus/protocol';
import { sha256, Values } from './values.js';

const CLEAN = { untrusted: false, secret: false };

describe('a value of a run', () => {
  it('stands in the log when it is small and trusted', () => {
    const values = new Values();
    expect(values.keep('node:a', { x: 1 }, CLEAN)).toEqual({ is: 'inline', value: { x: 1 } });
    expect(values.freshOf(['node:a'])).toEqual([]);
  });

  it.each<[string, Json, boolean]>([
    ['untrusted, however small', 'hi', true],
    ['large', 'x'.repeat(16 * 1024), false],
  ])('stands in the store when it is %s, and the log has its hash, size and trust', (_why, value, untrusted) => {
    const values = new Values();
    const text = JSON.stringify(value);
    const kept = values.keep('node:a', value, { untrusted, secret: false });
    expect(kept).toEqual({ is: 'ref', ref: 'node:a', sha256: sha256(text), bytes: Buffer.byteLength(text), untrusted });
    expect(values.read(kept)).toEqual(value);
    expect(values.freshOf(['node:a', 'other'])).toEqual([
      { ref: 'node:a', sha256: sha256(text), bytes: Buffer.byteLength(text), untrusted, value },
    ]);
  });

  it('is written once: with the batch that refers to it', () => {
    const values = new Values();
    values.keep('node:a', 'x', { untrusted: true, secret: false });
    values.written(values.freshOf(['node:a']));
    expect(values.freshOf(['node:a'])).toEqual([]);
    expect(values.has('node:a')).toBe(true);
  });

  it('is shown by hash and size where it was not loaded', () => {
    const values = new Values();
    const stored = { is: 'ref', ref: 'node:b', sha256: 'f'.repeat(64), bytes: 7, untrusted: true } as const;
    expect(values.read(stored)).toEqual({ sha256: stored.sha256, length: 7, contentTrust: 'untrusted' });
    values.learn(new Map([['node:b', 'loaded']]));
    expect(values.read(stored)).toBe('loaded');
  });
});
