import { asTenant, Db, type Prisma } from '@isthmus/db';
import { ALL_SCOPES, type Scope } from '@isthmus/protocol';
import { appendAudit } from './audit-store.js';
import { parseKey } from './keys.js';
import { setScopes } from './revocation-store.js';
import { Argon2Hasher } from './secret-hasher.js';

type SeedPrincipal = { readonly id: string; readonly scopes: 'all' | readonly Scope[]; readonly keys: readonly string[] };
type SeedTenant = { readonly id: string; readonly workspace: string; readonly principals: readonly SeedPrincipal[] };
export type SeedSpec = { readonly tenants: readonly SeedTenant[] };

/** Makes what of `spec` is not there yet and sets the scopes it names; of a key only the hash is kept. As often as you like. */
export async function seedTenants(adminDatabaseUrl: string, spec: SeedSpec): Promise<void> {
  const db = new Db(adminDatabaseUrl, 1);
  try {
    for (const tenant of spec.tenants) await asTenant(db, tenant.id, (tx) => seedTenant(tx, tenant, new Date()));
  } finally {
    await db.$disconnect();
  }
}

async function seedTenant(tx: Prisma.TransactionClient, { id: tenant, workspace, principals }: SeedTenant, at: Date): Promise<void> {
  await tx.tenant.createMany({ data: [{ tenant, createdAt: at }], skipDuplicates: true });
  await tx.workspace.createMany({ data: [{ tenant, workspace, createdAt: at }], skipDuplicates: true });
  for (const { id: principal, scopes, keys } of principals) {
    const wanted = [...new Set(scopes === 'all' ? ALL_SCOPES : scopes)].sort();
    const { count } = await tx.principal.createMany({
      data: [{ tenant, principalId: principal, workspace, scopes: wanted, createdAt: at }],
      skipDuplicates: true,
    });
    if (count === 0) await setScopes(tx, tenant, principal, wanted, at);
    for (const key of keys) await seedKey(tx, tenant, principal, key, at);
  }
}

async function seedKey(tx: Prisma.TransactionClient, tenant: string, principal: string, key: string, at: Date): Promise<void> {
  const parsed = parseKey(key);
  if (!parsed) throw new Error(`A key of principal ${principal} is not in the format of a key.`);
  const { keyId, secret } = parsed;
  const known = await tx.apiKey.findUnique({ where: { keyId }, select: { tenant: true, principalId: true } });
  if (known) {
    if (known.tenant !== tenant || known.principalId !== principal) throw new Error(`Key ${keyId} belongs to someone else.`);
    return;
  }
  const secretHash = await new Argon2Hasher().hash(secret);
  await tx.apiKey.create({ data: { keyId, tenant, principalId: principal, secretHash, createdAt: at } });
  await appendAudit(tx, tenant, [{ at: at.toISOString(), type: 'key.created', facts: { keyId, principal } }]);
}
