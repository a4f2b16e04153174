import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Host, idOf } from './authz-host.suite.js';

/** What the service's own role can and cannot do, whatever its code does. */
let host: Host;
let role: ReturnType<Host['pool']>;
beforeAll(async () => {
  host = await Host.start();
  role = host.pool(host.database.serviceUrl('authz'));
});
afterAll(() => host.stop());

const DENIED = '42501';
const TABLES = ['tenants', 'workspaces', 'principals', 'api_keys', 'revocations', 'audit', 'audit_checkpoints'];
const countOf = async (table: string) => Number((await role.query(`select count(*) from authz.${table}`)).rows[0].count);

/** Runs `sql` as the role, working for `tenant`. */
async function as(tenant: string, sql: string, values: unknown[] = []) {
  const client = await role.connect();
  try {
    await client.query('begin');
    await client.query(`select set_config('app.tenant', $1, true)`, [tenant]);
    return await client.query(sql, values);
  } finally {
    await client.query('rollback');
    client.release();
  }
}

describe('the role of authz', () => {
  it.each(TABLES)('sees nothing of any tenant in %s without one', async (table) => {
    expect(await countOf(table)).toBe(0);
    expect((await as('', `select from authz.${table}`)).rowCount).toBe(0);
  });

  it('sees one tenant at a time', async () => {
    expect((await as('acme', 'select principal_id from authz.principals order by 1')).rows).toEqual([
      { principal_id: 'user-alice' },
      { principal_id: 'user-low' },
    ]);
    expect((await as('globex', 'select tenant from authz.api_keys')).rows).toEqual([{ tenant: 'globex' }]);
    expect((await as('globex', `update authz.api_keys set revoked_at = now() where key_id = $1`, [idOf(host.keys.primary)])).rowCount).toBe(
      0,
    );
  });

  it('is blind again when a connection that worked for a tenant is used by the next', async () => {
    for (let use = 0; use < 8; use += 1) await as('acme', 'select from authz.principals');
    expect(await countOf('principals')).toBe(0);
  });

  it('cannot put a row into another tenant', async () => {
    await expect(as('acme', `insert into authz.revocations values (99, 'globex', now(), 'x')`)).rejects.toMatchObject({ code: DENIED });
    await expect(
      as('acme', `insert into authz.audit values ('tenant:globex', 99, 'globex', now(), 'x', '{}', 'p', 'h')`),
    ).rejects.toMatchObject({ code: DENIED });
    await expect(as('acme', `insert into authz.audit values ('host', 99, null, now(), 'x', '{}', 'p', 'h')`)).rejects.toMatchObject({
      code: DENIED,
    });
    await expect(
      as('acme', `insert into authz.audit values ('tenant:globex', 99, 'acme', now(), 'x', '{}', 'p', 'h')`),
    ).rejects.toMatchObject({ code: '23514' });
  });

  it.each([
    'alter table authz.principals disable row level security',
    'alter table authz.api_keys no force row level security',
    'drop policy tenant on authz.principals',
    'alter table authz.audit disable trigger all',
    'set role isthmus_keys',
    'set role isthmus_engine',
    'set role postgres',
    'set session_replication_role = replica',
    'create table authz.mine (a int)',
    'create function authz.mine() returns int language sql as $$ select 1 $$',
    'create table public.mine (a int)',
    `insert into authz.tenants values ('new', now())`,
    `update authz.api_keys set secret_hash = 'x'`,
    `update authz.api_keys set tenant = 'globex'`,
    `update authz.principals set tenant = 'globex'`,
    'delete from authz.api_keys',
    'delete from authz.revocations',
    'update authz.signing_keys set slot = 2',
    'delete from authz.signing_keys',
  ])('may not: %s', async (sql) => {
    await expect(as('acme', sql)).rejects.toMatchObject({ code: DENIED });
  });

  it('is told so instead of shown rows when it asks to bypass row security', async () => {
    await expect(as('acme', `set local row_security = off; select * from authz.principals`)).rejects.toMatchObject({ code: DENIED });
  });

  it('meets forced row security on every table that has a tenant', async () => {
    const { rows } = await host.pool(host.database.adminUrl).query(`
      select c.relname as name, c.relrowsecurity and c.relforcerowsecurity as forced from pg_class c join pg_attribute a on a.attrelid = c.oid
      where c.relnamespace = 'authz'::regnamespace and c.relkind = 'r' and a.attname = 'tenant' order by 1`);
    expect(rows).toEqual([...TABLES].sort().map((name) => ({ name, forced: true })));
  });

  it('has no business in the schemas of other services', async () => {
    const admin = host.pool(host.database.adminUrl);
    const { rows } = await admin.query(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname in ('engine', 'mcp_client', 'mcp_server', 'public')`,
    );
    expect(rows.map(({ name }) => name)).toContain('engine.runs');
    for (const { name } of rows) await expect(role.query(`select * from ${name}`)).rejects.toMatchObject({ code: DENIED });
  });

  it('is the only one with business in the schema of authz', async () => {
    for (const service of ['engine', 'mcp-client', 'mcp-server'] as const) {
      const other = host.pool(host.database.serviceUrl(service));
      await expect(other.query('select * from authz.signing_keys')).rejects.toMatchObject({ code: DENIED });
      await expect(other.query(`select * from authz.key_by_id('x')`)).rejects.toMatchObject({ code: DENIED });
      await expect(other.query('select * from authz.revocations_since(0)')).rejects.toMatchObject({ code: DENIED });
    }
  });
});

describe('the look-up of a key', () => {
  it('gives one key by its exact id, and no way to list others', async () => {
    const { rows } = await role.query('select * from authz.key_by_id($1)', [idOf(host.keys.primary)]);
    expect(rows).toMatchObject([
      { tenant: 'acme', principal_id: 'user-alice', secret_hash: expect.stringMatching(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/) },
    ]);
    for (const guess of ['%', '', idOf(host.keys.primary).slice(0, -1), null]) {
      expect((await role.query('select * from authz.key_by_id($1)', [guess])).rows).toEqual([]);
    }
  });

  it('cannot be fooled by objects of the asker', async () => {
    const client = await role.connect();
    try {
      // Temporary tables come first in a search path that does not name pg_temp last.
      await client.query('create temporary table api_keys (key_id text)');
      await client.query(`set search_path = pg_temp, authz`);
      expect((await client.query('select tenant from authz.key_by_id($1)', [idOf(host.keys.other)])).rows).toEqual([{ tenant: 'globex' }]);
    } finally {
      client.release(true);
    }
  });
});

describe('the audit log', () => {
  const CHANGES = [
    'update authz.audit set type = $$x$$',
    'delete from authz.audit',
    'truncate authz.audit',
    'update authz.audit_checkpoints set signature = $$x$$',
    'delete from authz.audit_checkpoints',
    'truncate authz.audit_checkpoints',
  ];

  it.each(CHANGES)('refuses the role: %s', async (sql) => {
    await expect(as('acme', sql)).rejects.toMatchObject({ code: DENIED });
  });

  it.each(CHANGES)('refuses its owner: %s', async (sql) => {
    await expect(host.pool(host.database.adminUrl).query(sql)).rejects.toMatchObject({
      code: DENIED,
      message: 'the audit log is append-only',
    });
  });
});
