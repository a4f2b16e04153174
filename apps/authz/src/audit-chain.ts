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
export const hashOf = ({ seq, tenant, at, type, facts, prevHash }: AuditEntry): string =>
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
 * Walks a stretch of a chain and notes where it is not as it was written. A changed, missing, added or moved entry shows where
 * the next one should point to it; what the last entry is pointed to by is its stored hash.
 */
export class ChainCheck {
  readonly anomalies: Anomaly[] = [];
  #last: { readonly seq: number; readonly ownHash: string; readonly hash: string } | undefined;

  /** @param firstSeq where the stretch is known to begin, when that is known from elsewhere */
  constructor(private readonly firstSeq?: number) {}

  /** @returns the hash of the entry as it is now, whatever is stored as its hash */
  add(entry: SealedEntry): string {
    const { seq, prevHash } = entry;
    const ownHash = hashOf(entry);
    const wanted = this.#last ? this.#last.seq + 1 : (this.firstSeq ?? seq);
    // A stretch that starts later takes its first link on trust.
    const expected = this.#last ? this.#last.ownHash : seq === 0 ? null : prevHash;
    if (seq !== wanted && prevHash === expected) this.#note(seq, this.#last?.ownHash ?? null, null);
    else if (prevHash !== expected) this.#note(seq, expected, prevHash);
    this.#last = { seq, ownHash, hash: entry.hash };
    return ownHash;
  }

  /** @param lastSeq where the stretch is known to end, when that is known from elsewhere */
  end(lastSeq?: number): readonly Anomaly[] {
    const last = this.#last;
    if (last && last.ownHash !== last.hash) this.#note(last.seq + 1, last.ownHash, last.hash);
    else if (lastSeq !== undefined && (last?.seq ?? -1) < lastSeq) this.#note((last?.seq ?? -1) + 1, last?.ownHash ?? null, null);
    return this.anomalies;
  }

  #note(atSeq: number, expectedPrevHash: string | null, actualPrevHash: string | null): void {
    this.anomalies.push({ atSeq, expectedPrevHash, actualPrevHash });
  }
}

/** Is this stretch of a chain as it was written. */
export function verifyChain(entries: readonly SealedEntry[]): { readonly chainValid: boolean; readonly anomalies: readonly Anomaly[] } {
  const check = new ChainCheck();
  for (const entry of entries) check.add(entry);
  const anomalies = check.end();
  return { chainValid: anomalies.length === 0, anomalies };
}
