import type { Tx } from '@isthmus/db';
import { type authz, type Output, type Parsed, WopError } from '@isthmus/protocol';
import { ChainCheck } from './audit-chain.js';
import { checkpointsFrom, entriesFrom, newestCheckpoint } from './audit-checkpoints.js';
import type { CheckpointKey } from './audit-signer.js';
import { chainOf } from './audit-store.js';
import { merkleRoot } from './merkle.js';

/** What one request walks and answers at most: the answer fits a message, and a long chain is asked for in parts. */
const MAX_ENTRIES = 50_000;
const MAX_CHECKPOINTS = 1_000;
const MAX_ANOMALIES = 1_000;
const PAGE = 1_000;

/** What the first entry points to. The wire has no null here. */
const NOTHING = '0'.repeat(64);

/** Walks a stretch of a tenant's chain and says whether it is as it was written and as it was sealed. (wire §4.8) */
export async function verifyRange(
  tx: Tx,
  tenant: string,
  key: CheckpointKey,
  { fromSeq = 0, toSeq }: Parsed<typeof authz.verifyAudit>,
): Promise<Output<typeof authz.verifyAudit>> {
  if (toSeq !== undefined && toSeq < fromSeq) throw new WopError('validation_error', 'toSeq must not be smaller than fromSeq.');
  const chain = chainOf(tenant);
  const checkpoints = await checkpointsFrom(tx, chain, fromSeq, MAX_CHECKPOINTS);
  const head = Math.max((await newestEntry(tx, chain)) ?? 0, (await newestCheckpoint(tx, chain)) ?? 0);
  const reach = Math.min(
    fromSeq + MAX_ENTRIES - 1,
    checkpoints.length === MAX_CHECKPOINTS ? (checkpoints.at(-1)?.atSequence ?? head) : head,
  );
  if (toSeq !== undefined && Math.min(toSeq, head) > reach)
    throw new WopError('validation_error', `The range is too long to verify at once: ask up to toSeq ${reach}, then go on.`, {
      path: 'toSeq',
      maxToSeq: reach,
    });
  const end = Math.min(toSeq ?? reach, reach);
  const inRange = checkpoints.filter(({ atSequence }) => atSequence <= end);

  // A checkpoint in range may have begun before it; and the first link is not taken on trust where there is an entry before it.
  const start = Math.max(0, Math.min(fromSeq - 1, inRange[0]?.after ?? fromSeq));
  const { hashes, anomalies } = await walk(tx, chain, start, end);
  const checkpointsValid = inRange.every(({ after, atSequence, merkleRoot: root, signature }) => {
    const leaves = hashes.slice(after + 1 - start, atSequence + 1 - start);
    return leaves.every((leaf) => leaf !== undefined) && merkleRoot(leaves as string[]) === root && key.isSigned(root, signature);
  });
  const found = anomalies.filter(({ atSeq }) => atSeq >= fromSeq).slice(0, MAX_ANOMALIES);
  return {
    fromSeq,
    toSeq: toSeq ?? Math.max(fromSeq, end),
    chainValid: found.length === 0 && checkpointsValid,
    checkpointsValid,
    checkpoints: inRange.map(({ after: _, ...checkpoint }) => checkpoint),
    anomalies: found.map(({ atSeq, expectedPrevHash, actualPrevHash }) => ({
      atSeq,
      expectedPrevHash: expectedPrevHash ?? NOTHING,
      actualPrevHash: actualPrevHash ?? '',
    })),
  };
}

async function newestEntry(tx: Tx, chain: string): Promise<number | undefined> {
  const [row] = await tx.rows<{ seq: bigint }>`select seq from authz.audit where chain = ${chain} order by seq desc limit 1`;
  return row && Number(row.seq);
}

/** The entries' hashes as they are now, by their distance from `start`, and where the chain breaks. */
async function walk(tx: Tx, chain: string, start: number, end: number) {
  const check = new ChainCheck(start);
  const hashes: (string | undefined)[] = Array.from({ length: Math.max(0, end - start + 1) });
  for (let next = start; next <= end; ) {
    const page = await entriesFrom(tx, chain, next, Math.min(PAGE, end - next + 1));
    const mine = page.filter(({ seq }) => seq <= end);
    for (const entry of mine) hashes[entry.seq - start] = check.add(entry);
    const last = page.at(-1);
    if (!last) break;
    next = last.seq + 1;
  }
  // A chain that never began has no end to miss.
  return { hashes, anomalies: check.end(end > 0 ? end : undefined) };
}
