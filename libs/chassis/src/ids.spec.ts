import { RunId } from '@isthmus/protocol';
import { describe, expect, it } from '@jest/globals';
import { RandomIds } from './ids.js';

describe('ids', () => {
  const ids = new RandomIds();

  it('gives runs ids that sort by time of creation', () => {
    const made = Array.from({ length: 500 }, () => ids.run());
    expect([...made].sort()).toEqual(made);
    expect(new Set(made).size).toBe(500);
    expect(made.every((id) => RunId.safeParse(id).success && id[14] === '7')).toBe(true);
  });

  it('gives opaque ids that fit into URLs and NATS subjects', () => {
    expect(ids.opaque()).toMatch(/^[A-Za-z0-9_-]{32}$/);
    expect(ids.opaque(32)).toHaveLength(43);
    expect(ids.opaque()).not.toBe(ids.opaque());
  });
});
