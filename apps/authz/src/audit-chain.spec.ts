import { describe, expect, it } from '@jest/globals';
import { type AuditFact, ChainCheck, continueChain, type SealedEntry, verifyChain } from './audit-chain.js';

const fact = (number: number): AuditFact => ({
  at: '2026-01-01T00:00:00.000Z',
  type: 'key.used',
  facts: { number, b: [1, { z: null, a: 'é' }] },
});
const chain = (length: number): SealedEntry[] =>
  continueChain(
    undefined,
    'acme',
    Array.from({ length }, (_, number) => fact(number)),
  );
const changed = (entries: readonly SealedEntry[], at: number, change: Partial<SealedEntry>): SealedEntry[] =>
  entries.map((entry, index) => (index === at ? { ...entry, ...change } : entry));

describe('the audit chain', () => {
  it('hashes the RFC 8785 form of an entry with SHA-256', () => {
    const [first, second] = continueChain(undefined, undefined, [
      { at: '2026-01-01T00:00:00.000Z', type: 'a', facts: { b: 1, a: 2 } },
      { at: '2026-01-01T00:00:00.000Z', type: 'b', facts: {} },
    ]);
    // printf '{"at":"2026-01-01T00:00:00.000Z","facts":{"a":2,"b":1},"prevHash":null,"seq":0,"type":"a"}' | sha256sum
    expect(first).toMatchObject({ seq: 0, prevHash: null, hash: '176fe5926ffc94cc251cd11ef43a1d3a3cc27f10271e009728c53969ad1a834f' });
    expect(second).toMatchObject({ seq: 1, prevHash: first?.hash });
  });

  it('is valid as it was written, however it was batched and however members are ordered', () => {
    const whole = chain(5);
    const [head] = whole;
    if (!head) throw new Error('no entry');
    const later = continueChain(head, 'acme', [1, 2, 3, 4].map(fact));
    expect([head, ...later]).toEqual(whole);
    const reordered = whole.map((entry) => ({ ...entry, facts: Object.fromEntries(Object.entries(entry.facts).reverse()) }));
    expect(verifyChain(reordered)).toEqual({ chainValid: true, anomalies: [] });
    expect(verifyChain(whole.slice(2))).toEqual({ chainValid: true, anomalies: [] });
    expect(verifyChain([])).toEqual({ chainValid: true, anomalies: [] });
  });

  it.each<[string, Partial<SealedEntry>]>([
    ['facts', { facts: { number: 99 } }],
    ['time', { at: '2026-01-01T00:00:00.001Z' }],
    ['type', { type: 'key.created' }],
    ['tenant', { tenant: 'globex' }],
    ['sequence', { seq: 7 }],
  ])('shows an entry whose %s was changed, wherever it stands', (_what, change) => {
    for (let at = 0; at < 5; at += 1) {
      const { chainValid, anomalies } = verifyChain(changed(chain(5), at, change));
      expect(chainValid).toBe(false);
      expect(anomalies.length).toBeGreaterThan(0);
    }
  });

  it('says after which entry the chain broke', () => {
    const entries = chain(5);
    const { anomalies } = verifyChain(changed(entries, 2, { facts: {} }));
    expect(anomalies).toEqual([{ atSeq: 3, expectedPrevHash: expect.any(String), actualPrevHash: entries[2]?.hash }]);
  });

  it('shows a changed entry whose own hash was made to fit', () => {
    const entries = chain(5);
    const [forged] = continueChain(entries[1], 'acme', [{ ...fact(2), facts: { number: 99 } }]);
    expect(verifyChain(changed(entries, 2, forged ?? {})).anomalies.map(({ atSeq }) => atSeq)).toEqual([3]);
  });

  it('shows entries that are missing, doubled or moved', () => {
    const [a, b, c, d] = chain(4) as [SealedEntry, SealedEntry, SealedEntry, SealedEntry];
    for (const bent of [
      [a, c, d],
      [a, b, b, c, d],
      [a, c, b, d],
      [b, a, c, d],
    ])
      expect(verifyChain(bent).chainValid).toBe(false);
  });

  it('does not begin anew in the middle', () => {
    const [first] = chain(1);
    expect(verifyChain([{ ...(first as SealedEntry), prevHash: 'f'.repeat(64) }]).chainValid).toBe(false);
  });

  it('shows a hole that was closed again with hashes that fit', () => {
    const entries = chain(5);
    const rest = [3, 4].map((seq) => ({ ...(entries[seq] as SealedEntry) }));
    const forged = continueChain(entries[1], 'acme', rest).map((entry, index) => ({ ...entry, seq: index + 3 }));
    expect(verifyChain([...entries.slice(0, 2), ...forged]).chainValid).toBe(false);
  });

  it('misses entries before the first and after the last, where it is known that there were some', () => {
    const entries = chain(5);
    const anomaliesOf = (part: readonly SealedEntry[]) => {
      const check = new ChainCheck(0);
      for (const entry of part) check.add(entry);
      return check.end(4).map(({ atSeq }) => atSeq);
    };
    expect(anomaliesOf(entries)).toEqual([]);
    expect(anomaliesOf(entries.slice(2))).toEqual([2]);
    expect(anomaliesOf(entries.slice(0, 3))).toEqual([3]);
    expect(anomaliesOf([])).toEqual([0]);
  });
});
