import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Bell } from '@isthmus/messaging';
import { BELLS, engine, isTerminal, isWopError, type Output, type RunEvent } from '@isthmus/protocol';
import { callerOf, until } from '@isthmus/testing';
import type pg from 'pg';
import { EngineRig, shape } from '../engine-rig.suite.js';
import { Commands } from './commands.js';
import { administrator, expectWhole, Tools, toolNode } from './driver-rig.suite.js';
import { DRIVER_SETTINGS, type DriverSettings } from './settings.js';

let rig: EngineRig;
let admin: pg.Pool;
let tools: Tools;
beforeAll(async () => {
  rig = await EngineRig.start(2, { LEASE_MS: '3000' });
  // The third engine's bells are lost: it rings none and hears none.
  await rig.boot({ LEASE_MS: '3000', SWEEP_MS: '60000' }, [[Bell, { ring: () => undefined, listen: () => () => undefined }]]);
  admin = await administrator(rig);
  tools = new Tools(rig);
}, 30_000);
afterAll(async () => {
  tools?.stop();
  await admin?.end();
  await rig?.stop();
});

/** The engine without bells takes runs, too, since it is one of the queue group; these tests are about the others. */
async function heldByOneThatHears(create: () => Promise<string>): Promise<string> {
  for (;;) {
    const runId = await create();
    const { rows } = await admin.query<{ lease_owner: string }>('select lease_owner from engine.runs where run_id = $1', [runId]);
    if (rows[0]?.lease_owner !== rig.get<DriverSettings>(DRIVER_SETTINGS as never, 2).instance) return runId;
    await cancelOn(2, runId);
  }
}

const gate = (id: string, config: object = {}) => ({ id, typeId: 'core.approvalGate', config });
const noop = (id: string) => ({ id, typeId: 'core.noop' });
const place = { tenant: callerOf().tenant, workspace: callerOf().workspace };
/** A wish put to one engine, past the queue group. */
const resolveOn = (index: number, runId: string, nodeId: string, by = 'ada') =>
  rig.get(Commands, index).put(
    place,
    runId,
    () => ({ type: 'resolve', target: { nodeId }, resumeValue: { action: 'accept' }, by: { principal: by } }),
    ({ status }) => status,
  );
const cancelOn = (index: number, runId: string) =>
  rig.get(Commands, index).put(
    place,
    runId,
    () => ({ type: 'cancel', by: 'ada' }),
    ({ status }, changed) => `${status}:${changed}`,
  );
const logOf = async (runId: string) => shape((await rig.read(runId)).events);

describe('wishes that race with workers and with each other', () => {
  it('are never lost and never granted twice: 30 runs with three gates each, three engines, everything at once', async () => {
    await rig.register(
      'gates',
      [
        noop('start'),
        ...['g1', 'g2', 'g3'].map((id) => gate(id)),
        ...['a1', 'a2', 'a3', 'join'].map(noop),
        { id: 'nap', typeId: 'core.delay', config: { delayMs: 40 } },
      ],
      ['start>g1', 'start>g2', 'start>g3', 'start>nap', 'g1>a1', 'g2>a2', 'g3>a3', 'a1>join', 'a2>join', 'a3>join', 'nap>join'],
    );
    const runs = await Promise.all(Array.from({ length: 30 }, () => rig.create('gates')));
    await until(
      async () => (await Promise.all(runs.map(async (runId) => (await rig.read(runId)).snapshot?.interrupts?.length === 3))).every(Boolean),
      { timeoutMs: 20_000 },
    );

    const granted = new Map<string, string[]>();
    const cancelled = new Set<string>();
    const codes = new Set<string>();
    await Promise.all(
      runs.flatMap((runId, index) => {
        // A third of them are cancelled, some of these before anybody answers and some after.
        const cancels = (before: boolean) =>
          index % 3 === 0 && (index % 2 === 0) === before
            ? [cancelOn(index % 3, runId).then(({ response }) => void (response === 'cancelled:true' && cancelled.add(runId)))]
            : [];
        const first = cancels(true);
        const resolves = ['g1', 'g2', 'g3', 'g1', 'g2', 'g3'].map(async (nodeId, turn) => {
          await resolveOn((index + turn) % 3, runId, nodeId, `voter-${turn}`).then(
            () => granted.set(runId, [...(granted.get(runId) ?? []), nodeId]),
            (error: unknown) => codes.add(isWopError(error) ? error.code : String(error)),
          );
        });
        return [...first, ...resolves, ...cancels(false)];
      }),
    );
    expect([...codes].filter((code) => code !== 'interrupt_already_resolved' && code !== 'interrupt_cancelled')).toEqual([]);

    for (const runId of runs) {
      const { events, status, snapshot } = await rig.ended(runId, 30_000);
      expectWhole(events);
      // What the row says is what the log folds to.
      expect(snapshot?.status).toBe(status);
      expect(status).toBe(cancelled.has(runId) ? 'cancelled' : 'completed');
      const resolved = (events ?? []).flatMap(({ type, nodeId }) => (type === 'interrupt.resolved' && nodeId ? [nodeId] : []));
      expect(resolved.sort()).toEqual((granted.get(runId) ?? []).sort());
    }
    expect(cancelled.size).toBeGreaterThan(0);
    expect(cancelled.size).toBeLessThan(30);
  }, 90_000);

  it('win against a driver that appends all the time', async () => {
    const ids = Array.from({ length: 1_000 }, (_, index) => `n${index}`);
    await rig.register(
      'busy',
      ids.map(noop),
      ids.slice(1).map((id, index) => ({ id: `e${index}`, sourceNodeId: `n${index}`, targetNodeId: id })),
    );
    for (let round = 0; round < 3; round += 1) {
      const runId = await rig.create('busy');
      expect((await cancelOn(round, runId)).response).toBe('cancelled:true');
      const { events, status } = await rig.ended(runId);
      expect(status).toBe('cancelled');
      expectWhole(events?.length ? await all(runId) : []);
    }
  }, 60_000);

  const all = async (runId: string): Promise<RunEvent[]> => {
    const events: RunEvent[] = [];
    for (let more = true; more; ) {
      const page: Output<typeof engine.readRun> = await rig.call(engine.readRun, { runId, fromSequence: events.length });
      events.push(...(page.events ?? []));
      more = page.more;
    }
    return events;
  };
});

describe('an answer to a run of which another branch is at work', () => {
  const parallel = async (): Promise<string> => {
    await rig.register(
      'parallel',
      [toolNode('tool'), gate('gate'), noop('after'), noop('join')],
      ['gate>after', 'tool>join', 'after>join'],
    );
    const calls = tools.calls.length;
    const runId = await heldByOneThatHears(() => rig.create('parallel'));
    await until(
      async () => tools.calls.slice(calls).some((call) => call.runId === runId) && (await rig.read(runId)).status === 'waiting-approval',
    );
    return runId;
  };

  it.each([0, 1])('disturbs nothing that is in flight, whichever engine takes it: %s', async (index) => {
    const abandoned: string[] = [];
    const heard = rig.connection.subscribe(BELLS.abandon.all, { callback: (_error, { subject }) => void abandoned.push(subject) });
    const before = tools.calls.length;
    const runId = await parallel();
    await resolveOn(index, runId, 'gate');
    await until(async () => (await logOf(runId)).includes('node.completed:after'));
    tools.finish();
    expectWhole((await rig.ended(runId)).events);
    heard.unsubscribe();
    expect(abandoned).toEqual([]);
    const calls = tools.calls.slice(before).filter((call) => call.runId === runId);
    expect(calls.map(({ repeat, round }) => [repeat, round])).toEqual([[false, 0]]);
  });

  it('is acted on also when its bell was lost', async () => {
    const runId = await parallel();
    await resolveOn(2, runId, 'gate');
    // The call is still in flight: the driver finds the answer when it renews its lease.
    await until(async () => (await logOf(runId)).includes('node.completed:after'));
    tools.finish();
    expectWhole((await rig.ended(runId)).events);
  });

  it('and a cancel whose bell was lost ends what is in flight', async () => {
    const abandoned: string[] = [];
    const heard = rig.connection.subscribe(BELLS.abandon.all, { callback: (_error, { subject }) => void abandoned.push(subject) });
    const runId = await parallel();
    await cancelOn(2, runId);
    await until(() => abandoned.length === 1);
    heard.unsubscribe();
    tools.finish();
    const { events, status } = await rig.read(runId);
    expect(status).toBe('cancelled');
    expectWhole(events);
  });
});

describe('a vote that settles nothing', () => {
  it('leaves the run waiting, with its timers, and nobody driving it', async () => {
    await rig.register('quorum', [gate('gate', { requiredApprovals: 3 })]);
    const runId = await rig.create('quorum', { configurable: { runTimeoutMs: 60_000 } });
    await rig.settled(runId);
    for (const by of ['ada', 'bob']) expect((await resolveOn(0, runId, 'gate', by)).response).toBe('waiting-approval');
    await until(async () => (await rig.read(runId)).status === 'waiting-approval' && !isTerminal((await rig.read(runId)).status));
    await resolveOn(1, runId, 'gate', 'eve');
    expectWhole((await rig.ended(runId)).events);
  });
});
