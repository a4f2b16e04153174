import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '@isthmus/testing';
import pg from 'pg';
import { EngineRig } from './engine-rig.suite.js';

// What Postgres counts does not depend on how busy the machine is. Timers that are not the runs' own are slow here, so that
// what is counted is the runs'.
const QUIET = { SWEEP_MS: '60000', LEASE_MS: '120000' };
let rig: EngineRig;
let admin: pg.Client;
beforeAll(async () => {
  rig = await EngineRig.start(1, QUIET);
  admin = new pg.Client({ connectionString: rig.database.adminUrl });
  await admin.connect();
}, 30_000);
afterAll(async () => {
  await admin?.end();
  await rig?.stop();
});

const BATCH = 25;

async function one<T>(text: string, values: readonly unknown[] = []): Promise<T> {
  const { rows } = await admin.query<{ value: T }>(text, [...values]);
  return rows[0]?.value as T;
}
const runs = (): Promise<number> => one<number>(`select count(*)::int as value from engine.runs where status = 'completed'`);
/** Sessions tell their counts when they end. */
async function commits(): Promise<number> {
  const sessions = `select count(*)::int as value from pg_stat_activity where usename = 'isthmus_engine' and datname = current_database()`;
  await until(async () => (await one<number>(sessions)) === 0);
  return Number(await one<string>('select pg_stat_get_db_xact_commit(oid) as value from pg_database where datname = current_database()'));
}

describe('a run of three nodes', () => {
  const batch = () => Promise.all(Array.from({ length: BATCH }, () => rig.create('three', { holdMs: 2_000 })));

  it('costs at most 20 kB of write-ahead log and three transactions, with its whole log written', async () => {
    const nodes = ['a', 'b', 'c'].map((id) => ({ id, typeId: 'core.noop' }));
    await rig.register('three', nodes, ['a>b', 'b>c']);
    await batch();

    // The log is the whole server's, and other tests write to it meanwhile: they only add, so one quiet batch tells.
    const seen: number[] = [];
    await until(
      async () => {
        const before = await one<string>('select pg_current_wal_insert_lsn() as value');
        await batch();
        seen.push(Number(await one<string>('select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1) as value', [before])) / BATCH);
        return seen.length >= 8 && Math.min(...seen) < 20_000;
      },
      { timeoutMs: 40_000, everyMs: 1, what: 'A batch of runs within 20 kB each' },
    );
    expect(Math.min(...seen)).toBeGreaterThan(1_000);
    expect(await one<number>('select count(*)::int as value from engine.events')).toBe((await runs()) * 8);

    // A fresh engine, so that all that is counted between the ends of the two is these runs.
    await rig.engines.shift()?.stop();
    const before = { commits: await commits(), runs: await runs() };
    await rig.boot(QUIET);
    for (let made = 0; made < 8; made += 1) await batch();
    await rig.engines[0]?.stop();
    const after = { commits: await commits(), runs: await runs() };
    const perRun = (after.commits - before.commits) / (after.runs - before.runs);
    expect(after.runs - before.runs).toBe(8 * BATCH);
    expect(perRun).toBeGreaterThan(1);
    expect(perRun).toBeLessThanOrEqual(3);
  }, 90_000);
});
