import type { Tx } from '@isthmus/db';
import type { Scope } from '@isthmus/protocol';
import { appendAudit } from './audit-store.js';

/** Each of these works inside a transaction of its tenant, and answers whether it changed anything. */

export async function revokeKey(tx: Tx, tenant: string, keyId: string, at: Date): Promise<boolean> {
  const revoked = await tx.run`
    update authz.api_keys set revoked_at = ${at} where key_id = ${keyId} and tenant = ${tenant} and revoked_at is null`;
  if (revoked === 0) return false;
  await nextEpoch(tx, tenant, 'key.revoked', at);
  await appendAudit(tx, tenant, [{ at: at.toISOString(), type: 'key.revoked', facts: { keyId } }]);
  return true;
}

export async function setScopes(tx: Tx, tenant: string, principal: string, scopes: readonly Scope[], at: Date): Promise<boolean> {
  const wanted = [...new Set(scopes)].sort();
  const changed = await tx.run`
    update authz.principals set scopes = ${wanted}
    where tenant = ${tenant} and principal_id = ${principal} and scopes is distinct from ${wanted}`;
  if (changed === 0) return false;
  await nextEpoch(tx, tenant, 'principal.scopes-changed', at);
  await appendAudit(tx, tenant, [{ at: at.toISOString(), type: 'principal.scopes-changed', facts: { principal, scopes: wanted } }]);
  return true;
}

/**
 * Passports of the tenant with an older epoch are refused from this commit on. The head's row stays locked until then, so epochs
 * become visible in order; the audit chain is locked after it, always in this order.
 */
async function nextEpoch(tx: Tx, tenant: string, reason: string, at: Date): Promise<void> {
  await tx.run`
    with head as (update authz.revocation_head set epoch = epoch + 1 where slot = 1 returning epoch)
    insert into authz.revocations (epoch, tenant, at, reason) select head.epoch, ${tenant}, ${at}, ${reason} from head`;
}
