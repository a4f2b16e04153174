import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { at, LogRig } from './log-rig.suite.js';

let rig: LogRig;
beforeAll(async () => {
  rig = await LogRig.start();
}, 30_000);
afterAll(() => rig?.stop());

describe('claiming what is due among 200,000 due runs of 10,000 tenants', () => {
  type Plan = { 'Node Type': string; 'Index Name'?: string; 'Actual Rows': number; 'Actual Loops': number; Plans?: Plan[] } & Record<
    string,
    number
  >;
  const flat = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(flat)];

  /** The plan of what the function runs, as prepared with parameters, which is how functions run it. */
  async function explain(name: string, types: readonly string[], values: readonly string[]): Promise<{ plan: Plan; nodes: Plan[] }> {
    const client = await rig.admin.connect();
    try {
      const { rows } = await client.query<{ src: string; args: string[] }>(
        `select prosrc as src, proargnames as args from pg_proc where oid = ('engine.' || $1)::regproc`,
        [name],
      );
      const source = types.reduce((text, _, index) => text.replaceAll(rows[0]?.args[index] ?? '?', `$${index + 1}`), rows[0]?.src ?? '');
      await client.query('begin');
      // Row-level security as for the functions' owner.
      await client.query('set local plan_cache_mode = force_generic_plan');
      await client.query(`prepare claim (${types.join(', ')}) as ${source}`);
      const explained = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
        `explain (analyze, buffers, format json) execute claim (${values.join(', ')})`,
      );
      const plan = explained.rows[0]?.['QUERY PLAN'][0].Plan;
      if (!plan) throw new Error('no plan');
      return { plan, nodes: flat(plan) };
    } finally {
      await client.query('rollback');
      await client.query('deallocate all');
      client.release();
    }
  }

  beforeAll(async () => {
    await rig.admin.query(
      `insert into engine.runs (run_id, tenant, workspace, principal, workflow_id, revision, status, head, epoch, due_at, transport, trust, options, started_at)
       select gen_random_uuid(), 'tenant-' || lpad((n % 10000)::text, 5, '0'), 'ws', 'p', 'w', 1, 'running', 0, 1, $1::timestamptz - n * interval '1 ms', 'rest', 'trusted', '{}', $1
       from generate_series(1, 200000) n`,
      [at(-1)],
    );
    await rig.admin.query('vacuum analyze engine.runs');
  }, 120_000);

  it('walks runs_due and touches pages in proportion to what it takes, not to what there is', async () => {
    const { plan, nodes } = await explain(
      'claim_due',
      ['text', 'timestamptz', 'timestamptz', 'text', 'integer', 'integer'],
      [`'engine-1'`, `'${at(0).toISOString()}'`, `'${at(6_000).toISOString()}'`, `'tenant-04000'`, '200', '2'],
    );
    expect(new Set(nodes.flatMap((node) => node['Index Name'] ?? []))).toEqual(new Set(['runs_due', 'runs_pkey']));
    expect(nodes.filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([]);
    expect(plan['Actual Rows']).toBe(400);
    // 200 steps of the walk, 200 looks at a tenant, 400 updates with their index entries: some 10 pages each.
    expect((plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)).toBeLessThan(15_000);
  });

  it('finds where to go on as cheaply', async () => {
    const { plan, nodes } = await explain('claim_cursor', ['text', 'integer'], [`'tenant-04000'`, '200']);
    expect(new Set(nodes.flatMap((node) => node['Index Name'] ?? []))).toEqual(new Set(['runs_due']));
    expect((plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)).toBeLessThan(2_000);
  });
});
