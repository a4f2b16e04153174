import type { Tx } from '@isthmus/db';
import { type JsonObject, jsonProblem } from '@isthmus/protocol';
import { type AuditFact, continueChain } from './audit-chain.js';

export const chainOf = (tenant: string | undefined): string => (tenant === undefined ? 'host' : `tenant:${tenant}`);

/**
 * Appends to one chain inside a transaction that works as its tenant (the host's chain: as none). The advisory lock makes this
 * transaction the chain's only writer until it ends; the head is read after it is held, so the chain never forks. (traps.md 23)
 */
export async function appendAudit(tx: Tx, tenant: string | undefined, facts: readonly AuditFact[]): Promise<void> {
  const chain = chainOf(tenant);
  await tx.run`select pg_advisory_xact_lock(hashtextextended(${`authz.audit ${chain}`}, 0))`;
  // Rides audit_pkey, backwards.
  const [head] = await tx.rows<{ seq: bigint; hash: string }>`
    select seq, hash from authz.audit where chain = ${chain} order by seq desc limit 1`;
  const entries = continueChain(head && { seq: Number(head.seq), hash: head.hash }, tenant, facts.map(storable));
  await tx.run`
    insert into authz.audit (chain, seq, tenant, at, type, facts, prev_hash, hash)
    select ${chain}, e.seq, ${tenant ?? null}, e.at, e.type, e.facts, e."prevHash", e.hash
    from json_to_recordset(${JSON.stringify(entries)}::json) as e (seq bigint, at timestamptz, type text, facts json, "prevHash" text, hash text)`;
}

/** Times as they come back from storage; and a fact that cannot be stored must not keep the others from being recorded. */
const storable = ({ at, type, facts }: AuditFact): AuditFact => ({ at: new Date(at).toISOString(), type, facts: storableFacts(facts) });

const storableFacts = (facts: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(facts)
      .filter(([name]) => !jsonProblem({ [name]: null }))
      .map(([name, value]) => [name, jsonProblem([value]) ? 'left out: it cannot be stored' : value]),
  );
