import { createHash } from 'node:crypto';
import type { JsonObject } from '@isthmus/protocol';
import canonicalize from 'canonicalize';

/** One entry of a chain, as it is hashed. `tenant` is absent in the host's own chain. */
export type AuditEntry = {
  readonly seq: number;
  readonly tenant?: string;
  readonly at: string;
  readonly type: string;
  readonly facts: JsonObject;
  /** Hash of the entry before; null for the first. */
  readonly prevHash: string | null;
};
export type SealedEntry = AuditEntry & { readonly hash: string };

export type AuditFact = Pick<AuditEntry, 'at' | 'type' | 'facts'>;
export type ChainHead = { readonly seq: number; readonly hash: string };

/** SHA-256 over the RFC 8785 form of the entry, without the stored hash itself. (auth.md, audit-log integrity) */
const hashOf = ({ seq, tenant, at, type, facts, prevHash }: AuditEntry): string =>
  createHash('sha256')
    .update(canonicalize({ seq, tenant, at, type, facts, prevHash }) ?? '')
    .digest('hex');

/** The entries that continue a chain which ends at `head`; without one they begin it. */
export function continueChain(head: ChainHead | undefined, tenant: string | undefined, facts: readonly AuditFact[]): SealedEntry[] {
  let last = head;
  return facts.map((fact) => {
    const entry: AuditEntry = {
      seq: last ? last.seq + 1 : 0,
      ...(tenant !== undefined && { tenant }),
      ...fact,
      prevHash: last?.hash ?? null,
    };
    const sealed = { ...entry, hash: hashOf(entry) };
    last = sealed;
    return sealed;
  });
}

export type Anomaly = { readonly atSeq: number; readonly expectedPrevHash: string | null; readonly actualPrevHash: string | null };

/**
 * Is this stretch of a chain as it was written. A changed, missing, added or moved entry shows where the next one should point
 * to it; what the last entry is pointed to by is its stored hash. A stretch that starts later takes its first link on trust.
 */
export function verifyChain(entries: readonly SealedEntry[]): { readonly chainValid: boolean; readonly anomalies: readonly Anomaly[] } {
  const [first] = entries;
  if (!first) return { chainValid: true, anomalies: [] };
  const ownHashes = entries.map(hashOf);
  const links = entries.map((entry, index) => ({
    atSeq: entry.seq,
    expectedPrevHash: index > 0 ? (ownHashes[index - 1] as string) : first.seq === 0 ? null : first.prevHash,
    actualPrevHash: entry.prevHash,
  }));
  const last = entries[entries.length - 1] as SealedEntry;
  const end = { atSeq: last.seq + 1, expectedPrevHash: ownHashes[entries.length - 1] as string, actualPrevHash: last.hash };
  const anomalies = [...links, end].filter(({ expectedPrevHash, actualPrevHash }) => expectedPrevHash !== actualPrevHash);
  return { chainValid: anomalies.length === 0, anomalies };
}
