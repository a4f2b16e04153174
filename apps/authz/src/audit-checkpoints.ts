import type { Tx } from '@isthmus/db';
import { ChainCheck, type SealedEntry } from './audit-chain.js';
import type { CheckpointKey } from './audit-signer.js';
import { chainOf } from './audit-store.js';
import { merkleRoot } from './merkle.js';

/** At most so many entries stand between two checkpoints, and none waits longer than this for one. Discovery says both. */
export const INTERVAL = { entries: 1_000, seconds: 300 } as const;

export type Checkpoint = {
  readonly checkpoint: string;
  readonly atSequence: number;
  readonly merkleRoot: string;
  readonly signature: string;
};

type Row = {
  seq: bigint;
  tenant: string | null;
  at: Date;
  type: string;
  facts: SealedEntry['facts'];
  prevHash: string | null;
  hash: string;
};

/** Entries of a chain from `from` on, in order. Rides audit_pkey. */
export async function entriesFrom(tx: Tx, chain: string, from: number, limit: number): Promise<SealedEntry[]> {
  const rows = await tx.rows<Row>`
    select seq, tenant, at, type, facts, prev_hash as "prevHash", hash from authz.audit
    where chain = ${chain} and seq >= ${from} order by seq limit ${limit}`;
  return rows.map(({ seq, tenant, at, ...rest }) => ({
    ...rest,
    seq: Number(seq),
    ...(tenant !== null && { tenant }),
    at: at.toISOString(),
  }));
}

export type Sealing = { readonly is: 'sealed'; readonly checkpoint: Checkpoint } | { readonly is: 'nothing' | 'broken' };

/**
 * Seals the next stretch of a chain: the entries after the newest checkpoint (after entry 0 where there is none), as many as one
 * interval has. Only what is as it was written is signed: a signature must not make a forgery true. Inside a transaction that
 * works as the chain's tenant.
 */
export async function sealNext(tx: Tx, tenant: string | undefined, key: CheckpointKey, id: string, at: Date): Promise<Sealing> {
  const chain = chainOf(tenant);
  // Replicas seal one after the other; appending goes on meanwhile, for it locks something else.
  await tx.run`select pg_advisory_xact_lock(hashtextextended(${`authz.audit seal ${chain}`}, 0))`;
  const previous = (await newestCheckpoint(tx, chain)) ?? 0;
  const entries = await entriesFrom(tx, chain, previous, INTERVAL.entries + 1);
  const check = new ChainCheck(previous);
  const leaves = entries.map((entry) => ({ seq: entry.seq, hash: check.add(entry) })).filter(({ seq }) => seq > previous);
  const last = leaves.at(-1);
  if (!last) return { is: 'nothing' };
  if (check.end().length > 0) return { is: 'broken' };
  const root = merkleRoot(leaves.map(({ hash }) => hash)) ?? '';
  const checkpoint = { checkpoint: id, atSequence: last.seq, merkleRoot: root, signature: key.sign(root) };
  await tx.run`
    insert into authz.audit_checkpoints (chain, at_seq, tenant, checkpoint, merkle_root, signature, at)
    values (${chain}, ${last.seq}, ${tenant ?? null}, ${id}, ${root}, ${checkpoint.signature}, ${at})`;
  return { is: 'sealed', checkpoint };
}

/** Where the newest checkpoint stands. Rides audit_checkpoints_pkey, backwards. */
export async function newestCheckpoint(tx: Tx, chain: string): Promise<number | undefined> {
  const [row] = await tx.rows<{ atSeq: bigint }>`
    select at_seq as "atSeq" from authz.audit_checkpoints where chain = ${chain} order by at_seq desc limit 1`;
  return row && Number(row.atSeq);
}

/** The checkpoints that stand at `from` or later, in order, with where the one before each stands. Rides audit_checkpoints_pkey. */
export async function checkpointsFrom(
  tx: Tx,
  chain: string,
  from: number,
  limit: number,
): Promise<readonly (Checkpoint & { readonly after: number })[]> {
  const rows = await tx.rows<Omit<Checkpoint, 'atSequence'> & { atSequence: bigint }>`
    select checkpoint, at_seq as "atSequence", merkle_root as "merkleRoot", signature from authz.audit_checkpoints
    where chain = ${chain} and at_seq >= ${from} order by at_seq limit ${limit}`;
  const [before] = await tx.rows<{ atSeq: bigint }>`
    select at_seq as "atSeq" from authz.audit_checkpoints where chain = ${chain} and at_seq < ${from} order by at_seq desc limit 1`;
  let after = Number(before?.atSeq ?? 0);
  return rows.map((row) => {
    const atSequence = Number(row.atSequence);
    const found = { ...row, atSequence, after };
    after = atSequence;
    return found;
  });
}
