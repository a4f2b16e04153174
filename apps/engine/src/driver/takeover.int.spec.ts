import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Health } from '@isthmus/chassis';
import { WopError } from '@isthmus/protocol';
import { until } from '@isthmus/testing';
import type pg from 'pg';
import { EngineRig, shape } from '../engine-rig.suite.js';
import { administrator, expectWhole, Tools, toolNode } from './driver-rig.suite.js';

let rig: EngineRig;
let admin: pg.Pool;
let tools: Tools;
beforeAll(async () => {
  rig = await EngineRig.start(2, { LEASE_MS: '3000' });
  admin = await administrator(rig);
  tools = new Tools(rig);
}, 30_000);
afterEach(() => tools.finish());
afterAll(async () => {
  tools?.stop();
  await admin?.end();
  await rig?.stop();
});

const delay = (id: string, delayMs: number) => ({ id, typeId: 'core.delay', config: { delayMs } });
const leases = async (runIds: readonly string[]) =>
  (
    await admin.query<{ lease_owner: string | null; epoch: number }>('select lease_owner, epoch from engine.runs where run_id = any($1)', [
      runIds,
    ])
  ).rows;

describe('two engines', () => {
  it('share the runs', async () => {
    await rig.register('working', [toolNode('tool')]);
    const runs = await Promise.all(Array.from({ length: 20 }, () => rig.create('working')));
    await until(async () => (await leases(runs)).every(({ lease_owner }) => lease_owner !== null));
    expect(new Set((await leases(runs)).map(({ lease_owner }) => lease_owner)).size).toBe(2);
    await until(() => tools.calls.length >= 20);
    tools.finish();
    for (const runId of runs) expectWhole((await rig.ended(runId)).events);
  });

  it('never drive one run both: who lost its lease writes nothing more, and the other one finishes', async () => {
    await rig.register('naps', [delay('a', 300), delay('b', 300), delay('c', 300)], ['a>b', 'b>c']);
    const runId = await rig.create('naps');
    await until(async () => shape((await rig.read(runId)).events).includes('node.started:a'));
    await rig.expireLease(runId);
    const { events, status } = await rig.ended(runId, 15_000);
    expect(status).toBe('completed');
    expectWhole(events);
    expect((await leases([runId]))[0]?.epoch).toBeGreaterThanOrEqual(3);
  });

  it('keep a delay’s time over a takeover: it is counted from when it began', async () => {
    await rig.register('nap', [delay('a', 1_400)]);
    const runId = await rig.create('nap');
    await until(async () => shape((await rig.read(runId)).events).includes('node.started:a'));
    await rig.expireLease(runId);
    const { events } = await rig.ended(runId, 15_000);
    const at = (type: string) => Date.parse(events?.find((event) => event.type === type)?.timestamp ?? '');
    expect(at('node.completed') - at('node.started')).toBeGreaterThanOrEqual(1_400);
    expect(at('node.completed') - at('node.started')).toBeLessThan(2_800);
  });

  it('give the lease of a long sleeper back, and any of them wakes it', async () => {
    await rig.register('sleeper', [delay('a', 2_000)]);
    const runId = await rig.create('sleeper');
    await until(async () => (await leases([runId]))[0]?.lease_owner === null);
    expect((await rig.read(runId)).status).toBe('running');
    expectWhole((await rig.ended(runId, 15_000)).events);
  });
});

describe('a call that comes too late for its lease', () => {
  it('is no outcome: whoever has the run then makes it', async () => {
    await rig.register('late', [toolNode('tool')]);
    const calls = tools.calls.length;
    tools.refuseOnce(new WopError('invocation_too_late', 'Another worker has this run by now.'));
    const runId = await rig.create('late');
    await until(() => tools.calls.length === calls + 2, { timeoutMs: 10_000 });
    tools.finish();
    const { events, status } = await rig.ended(runId);
    expect(status).toBe('completed');
    expectWhole(events);
  }, 30_000);
});

describe('a run that brings down whoever drives it', () => {
  it('is ended after five takeovers without a new fact, with a code that says so', async () => {
    await rig.register('poison', [toolNode('tool')]);
    const calls = tools.calls.length;
    const runId = await rig.create('poison');
    await until(() => tools.calls.length === calls + 1);
    for (let takeover = 1; takeover <= 5; takeover += 1) {
      const before = (await leases([runId]))[0]?.epoch ?? 0;
      await rig.expireLease(runId);
      await until(async () => ((await leases([runId]))[0]?.epoch ?? 0) > before + 1);
      if (takeover < 5) await until(() => tools.calls.length === calls + 1 + takeover);
    }
    const { snapshot, events } = await rig.ended(runId);
    expect(snapshot?.error).toMatchObject({ code: 'run_poisoned' });
    expectWhole(events);
    expect(shape(events)).toEqual(['run.started', 'node.started:tool', 'agent.toolCalled:tool', 'run.failed']);
  }, 30_000);

  it('is not a run whose log grows between its takeovers', async () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    await rig.register(
      'unlucky',
      ids.map((id) => delay(id, 200)),
      ids.slice(1).map((id, index) => `${ids[index]}>${id}`),
    );
    const runId = await rig.create('unlucky');
    for (const id of ids.slice(0, 6)) {
      await until(async () => shape((await rig.read(runId)).events).includes(`node.started:${id}`), { timeoutMs: 10_000 });
      await rig.expireLease(runId);
    }
    const { status, events } = await rig.ended(runId, 20_000);
    expect(status).toBe('completed');
    expectWhole(events);
  }, 40_000);
});

describe('40 runs, while engines die, connections break and leases are lost at any moment', () => {
  it('all complete, each exactly once', async () => {
    await rig.register(
      'work',
      [
        delay('a', 150),
        delay('b', 250),
        { id: 'set', typeId: 'core.setVariable', config: { name: 'v', value: 'x'.repeat(20_000) } },
        { id: 'c', typeId: 'core.noop' },
        delay('d', 150),
        { id: 'e', typeId: 'core.noop' },
      ],
      ['a>c', 'b>c', 'set>c', 'c>d', 'd>e'],
    );
    const runs = await Promise.all(Array.from({ length: 40 }, () => rig.create('work')));
    let dice = 1;
    const roll = (sides: number): number => {
      dice = (dice * 48_271) % 2_147_483_647;
      return dice % sides;
    };
    const doomed: Awaited<ReturnType<EngineRig['boot']>>[] = [];
    const done = async (): Promise<number> =>
      (
        await admin.query<{ n: number }>('select count(*)::int as n from engine.runs where run_id = any($1) and ended_at is not null', [
          runs,
        ])
      ).rows[0]?.n ?? 0;
    for (let blow = 0; (await done()) < runs.length; blow += 1) {
      const kind = roll(3);
      if (kind === 0) await rig.expireLease(runs[roll(runs.length)] as string);
      if (kind === 1) {
        // In the middle of whatever statement it is at: committed or not, the engine cannot know.
        await admin.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'isthmus_engine' and datname = current_database() and pid % 3 = $1`,
          [roll(3)],
        );
      }
      if (kind === 2 && doomed.length < 3) {
        // No farewell: its connections close while it works, and its leases stay behind.
        const extra = await rig.boot({ LEASE_MS: '3000' });
        rig.engines.pop();
        doomed.push(extra);
        await rig.expireLease(runs[roll(runs.length)] as string);
        await extra.app.close().catch(() => undefined);
      }
      const before = await done();
      await until(async () => (await done()) > before || (await done()) === runs.length, { timeoutMs: 60 + roll(60), everyMs: 10 }).catch(
        () => undefined,
      );
      if (blow > 400) throw new Error('the runs do not come to an end');
    }
    for (const runId of runs) {
      const { events, status, snapshot } = await rig.read(runId);
      expectWhole(events);
      // Blows can fall on one run five times without a fact in between; that is what poison is for, and it must be told apart.
      if (status !== 'completed') expect(snapshot?.error?.code).toBe('run_poisoned');
      else expect(shape(events).filter((line) => line.startsWith('node.completed'))).toHaveLength(6);
    }
    const { rows } = await admin.query<{ status: string; n: number }>(
      'select status, count(*)::int as n from engine.runs where run_id = any($1) group by 1',
      [runs],
    );
    expect(rows.find(({ status }) => status === 'completed')?.n).toBeGreaterThanOrEqual(38);
    for (const { app } of doomed) await app.get(Health, { strict: false }).drain();
  }, 120_000);
});
