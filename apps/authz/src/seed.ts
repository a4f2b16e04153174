import { Postgres, type Tx } from '@isthmus/db';
import { ALL_SCOPES, type Scope } from '@isthmus/protocol';
import { appendAudit } from './audit-store.js';
import { parseKey } from './keys.js';
import { setScopes } from './revocation-store.js';
import { Argon2Hasher } from './secret-hasher.js';

type SeedPrincipal = { readonly id: string; readonly scopes: 'all' | readonly Scope[]; readonly keys: readonly string[] };
type SeedTenant = {
  readonly id: string;
  /** Where its principals work. */
  readonly workspace: string;
  /** Further ones. */
  readonly workspaces?: readonly string[];
  readonly principals: readonly SeedPrincipal[];
};
export type SeedSpec = { readonly tenants: readonly SeedTenant[] };

/** Makes what of `spec` is not there yet and sets the scopes it names; of a key only the hash is kept. As often as you like. */
export async function seedTenants(adminDatabaseUrl: string, spec: SeedSpec): Promise<void> {
  const db = new Postgres(adminDatabaseUrl, 1, () => undefined);
  try {
    for (const tenant of spec.tenants) await db.asTenant(tenant.id, (tx) => seedTenant(tx, tenant, new Date()));
  } finally {
    await db.onApplicationShutdown();
  }
}

async function seedTenant(tx: Tx, { id: tenant, workspace, workspaces = [], principals }: SeedTenant, at: Date): Promise<void> {
  await tx.run`insert into authz.tenants (tenant, created_at) values (${tenant}, ${at}) on conflict do nothing`;
  for (const name of [workspace, ...workspaces])
    await tx.run`insert into authz.workspaces (tenant, workspace, created_at) values (${tenant}, ${name}, ${at}) on conflict do nothing`;
  for (const { id: principal, scopes, keys } of principals) {
    const wanted = [...new Set(scopes === 'all' ? ALL_SCOPES : scopes)].sort();
    const count = await tx.run`
      insert into authz.principals (tenant, principal_id, workspace, scopes, created_at)
      values (${tenant}, ${principal}, ${workspace}, ${wanted}, ${at}) on conflict do nothing`;
    if (count === 0) await setScopes(tx, tenant, principal, wanted, at);
    for (const key of keys) await seedKey(tx, tenant, principal, key, at);
  }
}

async function seedKey(tx: Tx, tenant: string, principal: string, key: string, at: Date): Promise<void> {
  const parsed = parseKey(key);
  if (!parsed) throw new Error(`A key of principal ${principal} is not in the format of a key.`);
  const { keyId, secret } = parsed;
  const [known] = await tx.rows<{ tenant: string; principalId: string }>`
    select tenant, principal_id as "principalId" from authz.api_keys where key_id = ${keyId}`;
  if (known) {
    if (known.tenant !== tenant || known.principalId !== principal) throw new Error(`Key ${keyId} belongs to someone else.`);
    return;
  }
  const secretHash = await new Argon2Hasher().hash(secret);
  await tx.run`
    insert into authz.api_keys (key_id, tenant, principal_id, secret_hash, created_at) values (${keyId}, ${tenant}, ${principal}, ${secretHash}, ${at})`;
  await appendAudit(tx, tenant, [{ at: at.toISOString(), type: 'key.created', facts: { keyId, principal } }]);
}
