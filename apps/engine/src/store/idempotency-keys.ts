import { inTransaction } from '@isthmus/db';
import type { Json } from '@isthmus/protocol';
import { Injectable } from '@nestjs/common';
import type pg from 'pg';

export type IdempotencyClaim = { readonly endpoint: string; readonly keyHash: string; readonly digest: string };
export type Claimed = { readonly is: 'claimed' } | { readonly is: 'known'; readonly response: Json } | { readonly is: 'mismatch' };

/** Layer 1 where what a request causes is not one append to one run. (idempotency.md 1.7) */
@Injectable()
export class IdempotencyKeys {
  constructor(private readonly pool: pg.Pool) {}

  /** Claims the key by itself: for work that may be done again, and comes out the same. */
  claim(tenant: string, claim: IdempotencyClaim, at: Date): Promise<Claimed> {
    return inTransaction(this.pool, tenant, (client) => claimKey(client, tenant, claim, {}, at));
  }
}

/**
 * Claims the key in the transaction of what it stands for, with the answer that a repeat gets. Rides idempotency_pkey; a
 * concurrent holder of the key makes this wait for its commit: exactly one execution.
 */
export async function claimKey(client: pg.ClientBase, tenant: string, claim: IdempotencyClaim, response: Json, at: Date): Promise<Claimed> {
  const { endpoint, keyHash, digest } = claim;
  const inserted = await client.query(
    `insert into engine.idempotency (tenant, endpoint, key_hash, digest, response, created_at)
     values ($1, $2, $3, $4, $5, $6) on conflict do nothing`,
    [tenant, endpoint, keyHash, digest, JSON.stringify(response), at],
  );
  if (inserted.rowCount === 1) return { is: 'claimed' };
  const { rows } = await client.query<{ digest: string; response: Json }>(
    'select digest, response from engine.idempotency where tenant = $1 and endpoint = $2 and key_hash = $3',
    [tenant, endpoint, keyHash],
  );
  const [known] = rows;
  return known?.digest === digest ? { is: 'known', response: known.response } : { is: 'mismatch' };
}
