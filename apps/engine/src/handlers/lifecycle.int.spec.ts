import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { engine, type Idempotency } from '@isthmus/protocol';
import { callerOf, until } from '@isthmus/testing';
import { EngineRig, shape } from '../engine-rig.suite.js';

let rig: EngineRig;
beforeAll(async () => {
  rig = await EngineRig.start(2);
  await rig.register('slow', [{ id: 'wait', typeId: 'core.delay', config: { delayMs: 60_000 } }]);
  await rig.register('quick', [{ id: 'n', typeId: 'core.noop' }]);
  await rig.register('gated', [{ id: 'gate', typeId: 'core.approvalGate' }]);
  await rig.register(
    'two',
    [
      { id: 'first', typeId: 'core.delay', config: { delayMs: 2_500 } },
      { id: 'second', typeId: 'core.noop' },
    ],
    ['first>second'],
  );
}, 30_000);
afterAll(() => rig?.stop());

let serial = 0;
const key = (digest = 'd'): Idempotency => {
  serial += 1;
  return { endpoint: 'POST /test', keyHash: `k${serial}`, digest };
};
const begun = async (workflowId: string, nodeId: string): Promise<string> => {
  const runId = await rig.create(workflowId);
  await until(async () => shape((await rig.read(runId)).events).includes(`node.started:${nodeId}`));
  return runId;
};
const runs = async (): Promise<number> => (await rig.call(engine.listRuns, { limit: 500 })).runs.length;

describe('a fork with a key', () => {
  it('is made once, however many ask at the same time, and answers the same ever after', async () => {
    const source = await rig.ended(await rig.create('quick'));
    const before = await runs();
    const wish = { runId: source.runId, mode: 'replay' as const, fromSeq: 0, idempotency: key() };
    const answers = await Promise.all(Array.from({ length: 8 }, () => rig.call(engine.forkRun, wish)));
    expect(new Set(answers.map(({ runId }) => runId)).size).toBe(1);
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(await runs()).toBe(before + 1);
    expect((await rig.ended(answers[0]?.runId ?? '')).status).toBe('completed');
    const { replayed, ...again } = await rig.call(engine.forkRun, wish);
    const { replayed: _, ...first } = answers[0] as (typeof answers)[number];
    expect([replayed, again]).toEqual([true, first]);
    await expect(rig.call(engine.forkRun, { ...wish, idempotency: { ...wish.idempotency, digest: 'other' } })).rejects.toMatchObject({
      code: 'idempotency_key_mismatch',
    });
  });

  it('leaves the key free when it was refused', async () => {
    const source = await rig.ended(await rig.create('quick'));
    const idempotency = key();
    const wish = { runId: source.runId, mode: 'replay' as const, idempotency };
    await expect(rig.call(engine.forkRun, { ...wish, fromSeq: 9_999 })).rejects.toMatchObject({ code: 'fork_point_invalid' });
    expect(await rig.call(engine.forkRun, { ...wish, fromSeq: 0 })).toMatchObject({ replayed: false });
  });
});

describe('a pause with a key', () => {
  it('that waits for a node is wished once, and its repeat pauses nothing that was resumed since', async () => {
    const runId = await begun('two', 'first');
    const wish = { runId, idempotency: key() };
    const first = await rig.call(engine.pauseRun, wish);
    expect(first).toMatchObject({ status: 'paused', replayed: false });
    expect(await rig.call(engine.pauseRun, wish)).toEqual({ ...first, replayed: true });
    await until(async () => (await rig.read(runId)).status === 'paused');
    const resume = { runId, idempotency: key() };
    const resumed = await rig.call(engine.resumeRun, resume);
    expect(await rig.call(engine.resumeRun, resume)).toEqual({ ...resumed, replayed: true });
    expect(await rig.call(engine.pauseRun, wish)).toEqual({ ...first, replayed: true });
    expect((await rig.ended(runId)).status).toBe('completed');
    expect(shape((await rig.read(runId)).events).filter((type) => type === 'run.paused')).toHaveLength(1);
    await expect(rig.call(engine.pauseRun, { runId, idempotency: { ...wish.idempotency, digest: 'x' } })).rejects.toMatchObject({
      code: 'idempotency_key_mismatch',
    });
  });

  it('that takes effect at once answers the same again', async () => {
    const runId = await begun('slow', 'wait');
    const wish = { runId, drainPolicy: 'immediate' as const, idempotency: key() };
    const first = await rig.call(engine.pauseRun, wish);
    expect(await rig.call(engine.pauseRun, wish)).toEqual({ ...first, replayed: true });
    await rig.call(engine.cancelRun, { runId });
    expect(await rig.call(engine.pauseRun, wish)).toEqual({ ...first, replayed: true });
    await expect(rig.call(engine.pauseRun, { runId })).rejects.toMatchObject({ code: 'run_terminal', details: { runStatus: 'cancelled' } });
  });
});

describe('cancelling many', () => {
  it('ends what runs, and says of each other one why not, in the order asked', async () => {
    const slow = await Promise.all([1, 2, 3].map(() => rig.create('slow')));
    const done = (await rig.ended(await rig.create('quick'))).runId;
    const asked = [slow[0], 'no-run', done, ...slow, '0190a000-0000-7000-8000-ffffffffffff'] as string[];
    const { results, replayed } = await rig.call(engine.cancelRuns, { runIds: asked, reason: 'enough' });
    expect(replayed).toBe(false);
    expect(results.map(({ runId }) => runId)).toEqual(asked);
    expect(results.map(({ ok, status, error }) => (ok ? status : error?.error))).toEqual([
      'cancelled',
      'not_found',
      'run_terminal',
      'cancelled',
      'cancelled',
      'cancelled',
      'not_found',
    ]);
    for (const runId of slow)
      expect((await rig.read(runId)).events?.filter(({ type }) => type === 'run.cancelled')).toEqual([
        expect.objectContaining({ payload: expect.objectContaining({ reason: 'enough' }) }),
      ]);
  });

  it('touches no run of another tenant', async () => {
    const runId = await rig.create('gated');
    const { results } = await rig.call(engine.cancelRuns, { runIds: [runId] }, callerOf({ tenant: 'globex' }));
    expect(results).toEqual([{ runId, ok: false, error: expect.objectContaining({ error: 'not_found' }) }]);
    expect((await rig.read(runId)).status).not.toBe('cancelled');
  });

  it('with a key decides the same again, and does nothing for another request', async () => {
    const [one, two] = await Promise.all([rig.create('slow'), rig.create('slow')]);
    const idempotency = key();
    const first = await rig.call(engine.cancelRuns, { runIds: [one as string], idempotency });
    const again = await rig.call(engine.cancelRuns, { runIds: [one as string], idempotency });
    expect(again).toEqual({ ...first, replayed: true });
    const other = { runIds: [two as string], idempotency: { ...idempotency, digest: 'other' } };
    await expect(rig.call(engine.cancelRuns, other)).rejects.toMatchObject({ code: 'idempotency_key_mismatch' });
    expect((await rig.read(two as string)).status).toBe('running');
  });
});

describe('a run that waits', () => {
  it('reads the same twice, its token included', async () => {
    const runId = await rig.create('gated');
    await rig.settled(runId);
    const reads = await Promise.all([rig.read(runId), rig.read(runId)]);
    expect(reads[0]?.snapshot?.interrupt?.interruptToken).toBeDefined();
    expect(JSON.stringify(reads[0]?.snapshot)).toBe(JSON.stringify(reads[1]?.snapshot));
  });
});
