import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { EngineRig } from './engine-rig.suite.js';

// What Postgres counts does not depend on how busy the machine is. Timers that are not the runs' own are slow here, so that
// what is counted is the runs'.
let rig: EngineRig;
let admin: pg.Client;
beforeAll(async () => {
  rig = await EngineRig.start(1, { SWEEP_MS: '60000', LEASE_MS: '120000' });
  admin = new pg.Client({ connectionString: rig.database.adminUrl });
  await admin.connect();
}, 30_000);
afterAll(async () => {
  await admin?.end();
  await rig?.stop();
});

const RUNS = 200;

async function counted(): Promise<{ lsn: string; commits: number }> {
  const { rows } = await admin.query<{ lsn: string; commits: string }>(
    'select pg_current_wal_insert_lsn() as lsn, pg_stat_get_db_xact_commit(oid) as commits from pg_database where datname = current_database()',
  );
  return { lsn: rows[0]?.lsn ?? '', commits: Number(rows[0]?.commits) };
}

describe('a run of three nodes', () => {
  it('costs at most three transactions and 20 kB of write-ahead log', async () => {
    await rig.register(
      'three',
      ['a', 'b', 'c'].map((id) => ({ id, typeId: 'core.noop' })),
      ['a>b', 'b>c'],
    );
    const warm = await rig.create('three');
    await rig.ended(warm);
    // Sessions tell their counts when they end.
    const { rows: sessions } = await admin.query<{ pid: number }>(
      `select pid from pg_stat_activity where usename = 'isthmus_engine' and datname = current_database()`,
    );
    expect(sessions.length).toBeGreaterThan(0);
    const before = await counted();

    const runs: string[] = [];
    for (let batch = 0; batch < RUNS / 10; batch += 1)
      runs.push(...(await Promise.all(Array.from({ length: 10 }, () => rig.create('three', { holdMs: 2_000 })))));
    const { rows: ended } = await admin.query<{ count: number }>(
      `select count(*)::int as count from engine.runs where status = 'completed'`,
    );
    expect(ended[0]?.count).toBe(RUNS + 1);
    const { rows: bytes } = await admin.query<{ bytes: string }>('select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1) as bytes', [
      before.lsn,
    ]);
    await rig.engines[0]?.stop();
    const after = await counted();

    expect(new Set(runs).size).toBe(RUNS);
    expect(Number(bytes[0]?.bytes) / RUNS).toBeLessThan(20_000);
    // The whole log is there: eight facts a run.
    const { rows: facts } = await admin.query<{ count: number }>('select count(*)::int as count from engine.events');
    expect(facts[0]?.count).toBe((RUNS + 1) * 8);
    const perRun = (after.commits - before.commits) / RUNS;
    expect(perRun).toBeGreaterThan(1);
    expect(perRun).toBeLessThanOrEqual(3);
  }, 60_000);
});
