import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { inTransaction } from '@isthmus/db';
import type pg from 'pg';
import { at, LogRig } from './log-rig.suite.js';

let rig: LogRig;
let runOfA: string;
let runOfB: string;
beforeAll(async () => {
  rig = await LogRig.start();
  [runOfA, runOfB] = [await rig.create({ tenant: 'a' }), await rig.create({ tenant: 'b' })];
  for (const [tenant, runId] of [
    ['a', runOfA],
    ['b', runOfB],
  ] as const) {
    await rig.append(runId, {
      tenant,
      values: [{ ref: 'v', value: { of: tenant }, untrusted: false, sha256: '', bytes: 1 }],
      idempotency: { endpoint: 'e', keyHash: 'k', digest: 'd', response: { of: tenant } },
    });
    await rig.admin.query(`insert into engine.workflow_revisions values ($1, 'ws', 'w', 1, '{}', 'p', now())`, [tenant]);
    await rig.admin.query(`insert into engine.exposures values ($1, 'default', 'tool', 'x', 'ws', 'w', 'n', '{}')`, [tenant]);
    await rig.admin.query(`insert into engine.exposure_versions values ($1, 'default', 1)`, [tenant]);
    await rig.admin.query(`insert into engine.invocations values ($1, 0, $2, $3, 'n', 1, null, now())`, [`i-${tenant}`, tenant, runId]);
    await rig.admin.query(`insert into engine.webhooks values ($1, $2, 'ws', 'p', 'https://x.example', '{*}', null, 's', now())`, [
      `h-${tenant}`,
      tenant,
    ]);
    await rig.admin.query(`insert into engine.webhook_deliveries values ($1, $2, 0, $3, 'dead', 0, null, null, now())`, [
      `h-${tenant}`,
      runId,
      tenant,
    ]);
  }
}, 30_000);
afterAll(() => rig?.stop());

const as = <T>(tenant: string, work: (client: pg.PoolClient) => Promise<T>): Promise<T> => inTransaction(rig.pool, tenant, work);
/** Tables of the schema that belong to tenants, as the database itself lists them: a new one is covered unasked. */
async function tables(): Promise<string[]> {
  const { rows } = await rig.admin.query<{ name: string }>(
    `select table_name as name from information_schema.columns where table_schema = 'engine' and column_name = 'tenant' order by 1`,
  );
  return rows.map(({ name }) => name);
}
const DENIED = { code: '42501' };

describe('the engine’s role', () => {
  it('sees rows of a tenant only when it says which, in every table', async () => {
    const all = await tables();
    expect(all.length).toBeGreaterThanOrEqual(9);
    for (const table of all) {
      const count = async (client: Pick<pg.PoolClient, 'query'>): Promise<unknown[]> =>
        (await client.query(`select tenant from engine.${table}`)).rows;
      expect([table, await count(rig.pool)]).toEqual([table, []]);
      expect([table, await as('', count)]).toEqual([table, []]);
      expect([table, await as('other', count)]).toEqual([table, []]);
      for (const tenant of ['a', 'b']) {
        const rows = await as(tenant, count);
        expect([table, rows.length > 0, new Set(rows.map((row) => (row as { tenant: string }).tenant))]).toEqual([
          table,
          true,
          new Set([tenant]),
        ]);
      }
    }
  });

  it('writes rows of the tenant it says and of no other', async () => {
    await expect(
      as('a', (client) => client.query(`insert into engine.idempotency values ('b', 'x', 'x', 'd', '{}', now())`)),
    ).rejects.toMatchObject(DENIED);
    await expect(rig.pool.query(`insert into engine.idempotency values ('a', 'x', 'x', 'd', '{}', now())`)).rejects.toMatchObject(DENIED);
    await expect(as('a', (client) => client.query(`update engine.runs set tenant = 'b'`))).rejects.toMatchObject(DENIED);
    expect(
      (await as('a', (client) => client.query(`update engine.runs set status = 'running' where run_id = $1`, [runOfB]))).rowCount,
    ).toBe(0);
  });

  it('holds row-level security against the owner of the tables, too', async () => {
    const { rows } = await rig.admin.query<{ relname: string }>(
      `select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = 'engine' and relkind = 'r' and not (relrowsecurity and relforcerowsecurity)`,
    );
    // Keys that sign interrupt tokens belong to the host.
    expect(rows).toEqual([{ relname: 'token_keys' }]);
  });

  it.each([
    'update engine.events set type = type',
    'delete from engine.events',
    'update engine.workflow_revisions set revision = 2',
    'delete from engine.workflow_revisions',
    'update engine.run_values set untrusted = false',
    'delete from engine.run_values',
    'update engine.idempotency set digest = digest',
    'delete from engine.idempotency',
    'delete from engine.runs',
    'truncate engine.events',
    'delete from engine.invocations',
  ])('cannot change what is written once: %s', async (statement) => {
    await expect(as('a', (client) => client.query(statement))).rejects.toMatchObject(DENIED);
  });

  it.each(['authz', 'mcp_client', 'mcp_server'])('cannot look into the schema of another service: %s', async (schema) => {
    const { rows } = await rig.admin.query<{ name: string }>(
      'select table_name as name from information_schema.tables where table_schema = $1',
      [schema],
    );
    expect(rows.length).toBeGreaterThan(0);
    for (const { name } of rows)
      await expect(as('a', (client) => client.query(`select 1 from ${schema}.${name}`))).rejects.toMatchObject(DENIED);
    await expect(as('a', (client) => client.query(`create table ${schema}.mine (x int)`))).rejects.toMatchObject(DENIED);
  });

  it('cannot make anything of its own, nor become another role', async () => {
    for (const statement of [
      'create table engine.mine (x int)',
      'create table public.mine (x int)',
      'create schema mine',
      'set role isthmus_claims',
      'set role isthmus_authz',
      'alter table engine.events disable row level security',
    ])
      await expect(as('a', (client) => client.query(statement))).rejects.toMatchObject(DENIED);
    await expect(as('a', (client) => client.query('set local row_security = off; select * from engine.runs'))).rejects.toMatchObject(
      DENIED,
    );
  });
});

describe('one connection that serves two tenants', () => {
  it('leaks nothing from one to the other, by function or by transaction', async () => {
    const client = await rig.pool.connect();
    try {
      const read = async (tenant: string, runId: string) =>
        (await client.query<{ run: { tenant: string } | null }>('select * from engine.read_run($1, null, $2, 0, 1000000)', [tenant, runId]))
          .rows[0]?.run;
      const visible = async () => (await client.query('select 1 from engine.runs')).rowCount;
      for (let round = 0; round < 3; round += 1) {
        expect((await read('a', runOfA))?.tenant).toBe('a');
        expect(await visible()).toBe(0);
        expect(await read('b', runOfA)).toBeNull();
        expect((await read('b', runOfB))?.tenant).toBe('b');
        expect(await read('a', runOfB)).toBeNull();
        expect(await visible()).toBe(0);
      }
    } finally {
      client.release();
    }
  });

  it('leaks nothing after a function that failed in the middle', async () => {
    const client = await rig.pool.connect();
    try {
      // With a key and a stale revision the function raises after it has set the tenant.
      const create = `select engine.create_run('a', 'ws', 'p', gen_random_uuid(), 'w', 99, 'e', now(), now(), 'rest', 'trusted', '{}', null, '{}', 'e', 'other', 'd', null, null, null, null, null, null, true)`;
      await expect(client.query(create)).rejects.toMatchObject({ code: 'P0001' });
      expect((await client.query('select 1 from engine.runs')).rowCount).toBe(0);
    } finally {
      client.release();
    }
  });

  it('serves interleaved work of both, each with its own', async () => {
    const work = Array.from({ length: 40 }, (_, index) => (index % 2 ? 'a' : 'b'));
    const found = await Promise.all(
      work.map(async (tenant) => (await rig.log.values(tenant, tenant === 'a' ? runOfA : runOfB, ['v'])).get('v')),
    );
    expect(found).toEqual(work.map((tenant) => ({ of: tenant })));
    for (const tenant of ['a', 'b']) expect((await rig.log.values(tenant, tenant === 'a' ? runOfB : runOfA, ['v'])).size).toBe(0);
  });
});

describe('functions', () => {
  it('do nothing to a run of another tenant', async () => {
    expect(await rig.append(runOfB, { expected: 1 })).toMatchObject({ is: 'fenced' });
    expect(await rig.command(runOfB, { expected: 1 })).toEqual({ is: 'conflict' });
    expect(await rig.log.release('a', runOfB, 1, 1, null)).toBe(false);
    expect(await rig.row(runOfB)).toMatchObject({ head: 1, lease_owner: 'engine-1' });
    expect(await rig.log.answered('a', { endpoint: 'e', keyHash: 'k', digest: 'd' })).toMatchObject({ response: { of: 'a' } });
    expect((await rig.log.list('a', 'ws', { limit: 10 })).map(({ runId }) => runId)).toEqual([runOfA]);
  });

  it('that cross tenants answer tenant, run, epoch and numbers, and nothing else', async () => {
    const { rows } = await rig.admin.query<{ name: string; columns: string; owner: string; config: string[] }>(
      `select proname as name, pg_get_function_result(p.oid) as columns, r.rolname as owner, proconfig as config from pg_proc p join pg_roles r on r.oid = proowner join pg_namespace n on n.oid = pronamespace where nspname = 'engine' and prosecdef order by 1`,
    );
    expect(rows.map(({ name, columns }) => [name, columns])).toEqual([
      ['claim_cursor', 'text'],
      ['claim_deliveries', 'TABLE(tenant text, webhook text, run uuid, sequence integer, attempt integer)'],
      ['claim_due', 'TABLE(tenant text, run uuid, epoch integer, takeovers integer)'],
      ['claim_run', 'TABLE(tenant text, run uuid, epoch integer, takeovers integer)'],
      ['delivery_cursor', 'text'],
      ['has_webhooks', 'boolean'],
      ['heads', 'TABLE(run uuid, head integer, status text)'],
      ['renew', 'TABLE(run uuid, moved boolean)'],
    ]);
    for (const { owner, config } of rows) expect([owner, config]).toEqual(['isthmus_claims', ['search_path=pg_catalog']]);
  });

  it('that cross tenants are for the engine only', async () => {
    const { rows } = await rig.admin.query<{ name: string; role: string }>(
      `select proname as name, rolname as role from pg_proc p join pg_namespace n on n.oid = pronamespace cross join pg_roles r
       where nspname = 'engine' and prosecdef and rolname like 'isthmus\\_%' and rolname not in ('isthmus_engine', 'isthmus_claims') and has_function_privilege(r.oid, p.oid, 'execute')`,
    );
    expect(rows).toEqual([]);
  });

  it('run as a role that nobody can be, that sees runs and due deliveries of all tenants and no other table', async () => {
    const { rows: roles } = await rig.admin.query(
      `select rolcanlogin, rolsuper, rolbypassrls, rolinherit from pg_roles where rolname = 'isthmus_claims'`,
    );
    expect(roles).toEqual([{ rolcanlogin: false, rolsuper: false, rolbypassrls: false, rolinherit: false }]);
    const { rows } = await rig.admin.query<{ name: string; privileges: string }>(
      `select table_schema || '.' || table_name as name, string_agg(privilege_type, ',' order by privilege_type) as privileges from information_schema.role_table_grants where grantee = 'isthmus_claims' group by 1`,
    );
    expect(rows).toEqual(['runs', 'webhook_deliveries'].map((name) => ({ name: `engine.${name}`, privileges: 'SELECT,UPDATE' })));
    const client = await rig.admin.connect();
    try {
      await client.query('begin');
      await client.query('set local role isthmus_claims');
      expect((await client.query('select distinct tenant from engine.runs order by 1')).rows).toEqual([{ tenant: 'a' }, { tenant: 'b' }]);
      await expect(client.query('select 1 from engine.events')).rejects.toMatchObject(DENIED);
    } finally {
      await client.query('rollback');
      client.release();
    }
  });

  it('reach runs of every tenant when they claim', async () => {
    const { claims } = await rig.log.claimDue('engine-9', at(60_000), at(66_000), '', 10, 10);
    expect(claims.map(({ tenant }) => tenant).sort()).toEqual(['a', 'b']);
  });
});
