import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { merkleRoot } from './merkle.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const [a, b, c, d, e] = ['a', 'b', 'c', 'd', 'e'].map(sha256) as [string, string, string, string, string];

describe('the Merkle root', () => {
  it('of one leaf is that leaf, of none there is none', () => {
    expect(merkleRoot([a])).toBe(a);
    expect(merkleRoot([])).toBeUndefined();
  });

  it('hashes the hex text of pairs, and lets the odd last one go up as it is', () => {
    // printf '%s' "$(printf a | sha256sum | cut -c1-64)$(printf b | sha256sum | cut -c1-64)" | sha256sum
    expect(merkleRoot([a, b])).toBe('62af5c3cb8da3e4f25061e829ebeea5c7513c54949115b1acc225930a90154da');
    expect(merkleRoot([a, b, c])).toBe(sha256(sha256(a + b) + c));
    expect(merkleRoot([a, b, c, d, e])).toBe(sha256(sha256(sha256(a + b) + sha256(c + d)) + e));
  });

  it('changes with every leaf and with their order', () => {
    const roots = [
      [a, b, c],
      [a, c, b],
      [a, b],
      [a, b, d],
    ].map(merkleRoot);
    expect(new Set(roots).size).toBe(roots.length);
  });
});
