// The keys of a stack. Made at first start, kept (mode 0600) so that a restart keeps them, hashed in the database, never committed.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { fingerprint, readJson, writeAtomically } from './files.mjs';
import { root } from './paths.mjs';

const NAMES = ['primary', 'secondary', 'lowScope', 'tenantB'];
const authz = (file) => import(pathToFileURL(path.join(root, 'apps/authz/dist', file)).href);

/** The keys in `file`, made where they are missing; without a file they live in memory only. */
export async function loadKeys(file) {
  const known = (file && existsSync(file) && readJson(file)) || {};
  const missing = NAMES.filter((name) => typeof known[name] !== 'string');
  if (missing.length === 0) return known;
  const { mintKey } = await authz('keys.js');
  const keys = { ...known, ...Object.fromEntries(missing.map((name) => [name, mintKey()])) };
  if (file) writeAtomically(file, `${JSON.stringify(keys, null, 2)}\n`, 0o600);
  return keys;
}

/** Two tenants: `primary` and `secondary` are one principal's keys, `lowScope` may only read, `tenantB` is somebody else. */
export const tenantsFor = ({ primary, secondary, lowScope, tenantB }, workspaces = []) => ({
  tenants: [
    {
      id: 'acme',
      workspace: 'main',
      workspaces,
      principals: [
        { id: 'user-alice', scopes: 'all', keys: [primary, secondary] },
        { id: 'user-low', scopes: ['runs:read'], keys: [lowScope] },
      ],
    },
    { id: 'globex', workspace: 'main', workspaces, principals: [{ id: 'user-bob', scopes: 'all', keys: [tenantB] }] },
  ],
});

/** Writes tenants, principals and hashed keys; as often as you like. `stamp` remembers that nothing has changed since, `workspaces` are further ones of each tenant. */
export async function seed(adminUrl, keys, { stamp, workspaces } = {}) {
  const wanted = stamp && (await fingerprintOf(adminUrl, tenantsFor(keys, workspaces)));
  if (wanted && existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  const { seedTenants } = await authz('seed.js');
  await seedTenants(adminUrl, tenantsFor(keys, workspaces));
  if (wanted) writeAtomically(stamp, wanted);
}

/** What a seeding depends on: what is seeded, the code, and this very database (another one has other migration rows). */
async function fingerprintOf(adminUrl, tenants) {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    const { rows } = await client.query('select id from _prisma_migrations order by id');
    return fingerprint(path.join(root, 'apps/authz/dist'), ['.built'], JSON.stringify(tenants), ...rows.map((row) => row.id));
  } finally {
    await client.end();
  }
}
