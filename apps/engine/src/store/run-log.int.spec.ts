import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { began, completed, fact } from '../core/given.suite.js';
import { at, LEASE, LogRig } from './log-rig.suite.js';

let rig: LogRig;
beforeAll(async () => {
  rig = await LogRig.start();
}, 30_000);
afterAll(() => rig?.stop());

const key = (keyHash: string, digest = 'd') => ({ endpoint: 'POST /x', keyHash, digest });

describe('creating a run', () => {
  it('writes the run, leased to its creator, and its first fact', async () => {
    const creation = rig.creation();
    expect(await rig.log.create(creation)).toEqual({ is: 'created', runId: creation.run.runId });
    expect(await rig.row(creation.run.runId)).toMatchObject({
      head: 0,
      epoch: 1,
      status: 'running',
      lease_owner: 'engine-1',
      due_at: LEASE,
      ended_at: null,
      takeovers: 0,
    });
    const page = await rig.log.read('a', 'ws', creation.run.runId);
    expect(page?.events).toEqual([{ ...creation.started, sequence: 0, at: at(0).getTime() }]);
    expect(page?.run).toMatchObject({
      tenant: 'a',
      workspace: 'ws',
      principal: 'p',
      workflowId: 'w',
      revision: 1,
      head: 0,
      epoch: 1,
      trust: 'trusted',
    });
  });

  it('with one key makes one run, however many ask at once', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => rig.log.create(rig.creation({ idempotency: key('many') }))));
    expect(answers.filter(({ is }) => is === 'created')).toHaveLength(1);
    expect(answers.filter(({ is }) => is === 'replayed')).toHaveLength(11);
    expect(new Set(answers.map((answer) => 'runId' in answer && answer.runId)).size).toBe(1);
  });

  it('with a key that stands for another request is refused, and so is nothing else: keys are of a tenant and an endpoint', async () => {
    await rig.create({ idempotency: key('taken', 'one') });
    expect(await rig.log.create(rig.creation({ idempotency: key('taken', 'two') }))).toEqual({ is: 'mismatch' });
    expect(await rig.log.create(rig.creation({ tenant: 'b', idempotency: key('taken', 'two') }))).toMatchObject({ is: 'created' });
    expect(await rig.log.create(rig.creation({ idempotency: { ...key('taken', 'two'), endpoint: 'other' } }))).toMatchObject({
      is: 'created',
    });
  });

  it('of a revision that is no more says which one is, writes nothing and leaves the key free', async () => {
    await rig.workflow('b', 7);
    for (const idempotency of [undefined, key('stale')]) {
      const stale = rig.creation({ tenant: 'b', revision: 6, ...(idempotency && { idempotency }) });
      expect(await rig.log.create(stale)).toEqual({ is: 'stale', revision: 7 });
      await expect(rig.row(stale.run.runId)).rejects.toThrow('no such run');
      expect(await rig.log.create(rig.creation({ tenant: 'b', revision: 7, ...(idempotency && { idempotency }) }))).toMatchObject({
        is: 'created',
      });
    }
    await rig.workflow('b', 1);
  });

  it('of a workflow that the workspace does not have says that there is none', async () => {
    for (const idempotency of [undefined, key('gone')])
      expect(await rig.log.create(rig.creation({ workspace: 'other', ...(idempotency && { idempotency }) }))).toEqual({
        is: 'stale',
        revision: null,
      });
  });
});

describe('appending', () => {
  it('puts facts behind the head, in order, and moves head, status and lease with them', async () => {
    const runId = await rig.create();
    const events = [began('n'), completed('n', { x: 1 }, { e: true }), fact('run.completed', {})];
    expect(await rig.append(runId, { events, status: 'completed', ended: true, release: true, due: null })).toEqual({
      is: 'ok',
      epoch: null,
    });
    expect(await rig.row(runId)).toMatchObject({
      head: 3,
      epoch: 1,
      status: 'completed',
      lease_owner: null,
      due_at: null,
      ended_at: at(1),
    });
    const page = await rig.log.read('a', null, runId, 1);
    expect(page?.events).toEqual(events.map((event, index) => ({ ...event, sequence: index + 1, at: at(1).getTime() })));
  });

  it('keeps what stands beside the payload: facts, trust, cause', async () => {
    const runId = await rig.create();
    const event = { ...completed('n', {}, { e: false }), untrusted: true, causationId: 'c' };
    await rig.append(runId, { events: [event as never] });
    expect((await rig.log.read('a', null, runId, 1))?.events[0]).toMatchObject({
      facts: { edges: { e: false } },
      untrusted: true,
      causationId: 'c',
    });
  });

  it('is a conflict when the head has moved, and then writes nothing', async () => {
    const runId = await rig.create();
    await rig.append(runId);
    const value = { ref: 'v', value: 1, untrusted: false, sha256: '', bytes: 1 };
    expect(await rig.append(runId, { values: [value] })).toEqual({ is: 'conflict' });
    expect(await rig.command(runId)).toEqual({ is: 'conflict' });
    expect(await rig.append(runId, { expected: 5 })).toEqual({ is: 'conflict' });
    expect(await rig.types(runId)).toEqual(['run.started', 'node.started']);
    expect((await rig.log.values('a', runId, ['v'])).size).toBe(0);
  });

  it('of many at the same head lets exactly one through', async () => {
    const runId = await rig.create();
    const appended = await Promise.all(Array.from({ length: 10 }, (_, index) => (index % 2 ? rig.append(runId) : rig.command(runId))));
    expect(appended.filter(({ is }) => is === 'ok')).toHaveLength(1);
    expect(appended.filter(({ is }) => is === 'conflict')).toHaveLength(9);
    expect(await rig.types(runId)).toHaveLength(2);
  });

  it('is fenced when another worker has claimed the run since, at whatever head', async () => {
    const runId = await rig.create();
    expect(await rig.log.claim('engine-2', runId, at(7_000), at(13_000))).toMatchObject({ epoch: 2 });
    expect(await rig.append(runId)).toEqual({ is: 'fenced' });
    expect(await rig.append(runId, { epoch: 2, owner: 'engine-2' })).toEqual({ is: 'ok', epoch: 2 });
    expect(await rig.append(runId, { expected: 1 })).toEqual({ is: 'fenced' });
  });

  it('to a run that has ended takes nothing, from nobody', async () => {
    const runId = await rig.create();
    await rig.end(runId);
    expect(await rig.append(runId, { expected: 1 })).toEqual({ is: 'conflict' });
    expect(await rig.command(runId, { expected: 1 })).toEqual({ is: 'conflict' });
    expect(await rig.types(runId)).toEqual(['run.started', 'run.cancelled']);
  });

  it('writes values with the batch, once and for ever', async () => {
    const runId = await rig.create();
    const value = (text: string) => ({ ref: 'node:n', value: { text }, untrusted: true, sha256: '', bytes: 1 });
    await rig.append(runId, { values: [value('first')] });
    await rig.append(runId, { expected: 1, values: [value('second')] });
    expect([...(await rig.log.values('a', runId, ['node:n', 'other']))]).toEqual([['node:n', { text: 'first' }]]);
    expect(await rig.types(runId)).toHaveLength(3);
  });
});

describe('a command', () => {
  const released = async (): Promise<string> => {
    const runId = await rig.create();
    await rig.log.release('a', runId, 1, 0, at(60_000));
    return runId;
  };

  it('takes the lease when nobody has it', async () => {
    const runId = await released();
    expect(await rig.command(runId, { due: at(9_000) })).toEqual({ is: 'ok', epoch: 2 });
    expect(await rig.row(runId)).toMatchObject({ epoch: 2, lease_owner: 'engine-2', due_at: at(9_000), head: 1 });
  });

  it('leaves the lease with the worker that has it, with its time', async () => {
    const runId = await rig.create();
    expect(await rig.command(runId, { due: at(9_000) })).toEqual({ is: 'ok', epoch: null });
    expect(await rig.row(runId)).toMatchObject({ epoch: 1, lease_owner: 'engine-1', due_at: LEASE, head: 1 });
  });

  it('that ends the run takes no lease and frees the one there is', async () => {
    for (const runId of [await rig.create(), await released()]) {
      expect(await rig.end(runId)).toEqual({ is: 'ok', epoch: null });
      expect(await rig.row(runId)).toMatchObject({ epoch: 1, lease_owner: null, due_at: null });
    }
  });

  it('with a key is answered as the first time, and appends once', async () => {
    const runId = await rig.create();
    const idempotency = (digest: string, response: string) => ({ ...key(runId, digest), response: { response } });
    expect(await rig.command(runId, { idempotency: idempotency('d', 'one') })).toEqual({ is: 'ok', epoch: null });
    expect(await rig.command(runId, { expected: 1, idempotency: idempotency('d', 'two') })).toEqual({
      is: 'replayed',
      response: { response: 'one' },
    });
    expect(await rig.command(runId, { expected: 1, idempotency: idempotency('e', 'two') })).toEqual({ is: 'mismatch' });
    expect(await rig.types(runId)).toHaveLength(2);
    expect(await rig.log.answered('a', key(runId))).toEqual({ digest: 'd', response: { response: 'one' } });
    expect(await rig.log.answered('b', key(runId))).toBeUndefined();
  });

  it('with a key that meets a moved head leaves the key free for the next try', async () => {
    const runId = await rig.create();
    await rig.append(runId);
    const idempotency = { ...key(runId), response: {} };
    expect(await rig.command(runId, { idempotency })).toEqual({ is: 'conflict' });
    expect(await rig.log.answered('a', key(runId))).toBeUndefined();
    expect(await rig.command(runId, { expected: 1, idempotency })).toMatchObject({ is: 'ok' });
  });

  it('with one key is granted once, however many ask at once', async () => {
    const runId = await rig.create();
    const many = await Promise.all(
      Array.from({ length: 8 }, (_, index) => rig.command(runId, { idempotency: { ...key(runId), response: { index } } })),
    );
    expect(many.filter(({ is }) => is === 'ok')).toHaveLength(1);
    expect(await rig.types(runId)).toHaveLength(2);
    const replays = many.flatMap((answer) => (answer.is === 'replayed' ? [JSON.stringify(answer.response)] : []));
    expect(new Set(replays).size).toBeLessThanOrEqual(1);
  });
});

describe('releasing a run', () => {
  it('frees the lease and says when to look next', async () => {
    const runId = await rig.create();
    expect(await rig.log.release('a', runId, 1, 0, at(60_000))).toBe(true);
    expect(await rig.row(runId)).toMatchObject({ lease_owner: null, due_at: at(60_000), epoch: 1 });
    expect(await rig.log.release('a', runId, 1, 0, null)).toBe(true);
    expect(await rig.row(runId)).toMatchObject({ due_at: null });
  });

  it('is refused when the log has grown: what grew may be work', async () => {
    const runId = await rig.create();
    await rig.command(runId);
    expect(await rig.log.release('a', runId, 1, 0, null)).toBe(false);
    expect(await rig.row(runId)).toMatchObject({ lease_owner: 'engine-1', due_at: LEASE });
  });

  it('is refused to a worker that lost the lease, to another tenant, and of a run that has ended', async () => {
    const runId = await rig.create();
    expect(await rig.log.release('b', runId, 1, 0, null)).toBe(false);
    await rig.log.claim('engine-2', runId, at(7_000), at(13_000));
    expect(await rig.log.release('a', runId, 1, 0, null)).toBe(false);
    const ended = await rig.create();
    await rig.end(ended);
    expect(await rig.log.release('a', ended, 1, 1, at(1))).toBe(false);
    expect(await rig.row(ended)).toMatchObject({ due_at: null });
  });
});

describe('renewing leases', () => {
  it('keeps those that are still held, and answers which', async () => {
    const [held, again, claimed, released, ended, foreign] = await Promise.all(Array.from({ length: 6 }, () => rig.create()));
    if (!held || !again || !claimed || !released || !ended || !foreign) throw new Error('six runs');
    await rig.log.claim('engine-2', claimed, at(7_000), at(13_000));
    await rig.log.release('a', released, 1, 0, at(60_000));
    await rig.end(ended);
    const kept = await rig.log.renew(
      'engine-1',
      [held, again, claimed, released, ended].map((runId) => ({ runId, epoch: 1 })),
      at(12_000),
    );
    expect([...kept].sort()).toEqual([held, again].sort().map((runId) => [runId, false]));
    expect((await rig.row(held)).due_at).toEqual(at(12_000));
    expect(await rig.row(claimed)).toMatchObject({ due_at: at(13_000), lease_owner: 'engine-2' });
    expect(await rig.row(released)).toMatchObject({ due_at: at(60_000), lease_owner: null });
    // Somebody else's, or an older claim of ours.
    expect((await rig.log.renew('engine-2', [{ runId: foreign, epoch: 1 }], at(12_000))).size).toBe(0);
    expect((await rig.log.renew('engine-1', [{ runId: foreign, epoch: 0 }], at(12_000))).size).toBe(0);
  });
});

describe('reading a run', () => {
  const long = async (payloads: readonly string[]): Promise<string> => {
    const runId = await rig.create();
    await rig.append(runId, { events: payloads.map((text) => fact('node.completed', { nodeId: 'n', outputs: { text } })) });
    return runId;
  };

  it('comes in pages within the budget, without a gap or a repeat, until nothing is left', async () => {
    const runId = await long(Array.from({ length: 50 }, () => 'x'.repeat(1_000)));
    const sequences: number[] = [];
    for (let from = 0, more = true; more; from = (sequences.at(-1) ?? 0) + 1) {
      const page = await rig.log.read('a', 'ws', runId, from, 10_000);
      if (!page) throw new Error('no page');
      expect(page.events.length).toBeGreaterThan(0);
      expect(JSON.stringify(page.events.map(({ payload }) => payload)).length).toBeLessThanOrEqual(10_000);
      sequences.push(...page.events.map(({ sequence }) => sequence));
      more = page.more;
    }
    expect(sequences).toEqual(Array.from({ length: 51 }, (_, index) => index));
  });

  it('gives one fact at least, however large it is', async () => {
    const runId = await long(['x'.repeat(50_000), 'y']);
    const page = await rig.log.read('a', 'ws', runId, 1, 1_000);
    expect(page?.events.map(({ sequence }) => sequence)).toEqual([1]);
    expect(page?.more).toBe(true);
    expect(await rig.log.read('a', 'ws', runId, 2, 1)).toMatchObject({ events: [{ sequence: 2 }], more: false });
  });

  it('beyond the head is empty, with the run', async () => {
    const runId = await rig.create();
    expect(await rig.log.read('a', 'ws', runId, 1)).toMatchObject({ run: { head: 0 }, events: [], more: false });
  });

  it('finds nothing in another tenant or workspace, and without a workspace everything of the tenant', async () => {
    const runId = await rig.create();
    expect(await rig.log.read('b', 'ws', runId)).toBeUndefined();
    expect(await rig.log.read('b', null, runId)).toBeUndefined();
    expect(await rig.log.read('a', 'other', runId)).toBeUndefined();
    expect(await rig.log.read('a', null, runId)).toBeDefined();
    expect(await rig.log.read('', null, runId)).toBeUndefined();
  });

  it('tells heads and statuses of many runs at once, and leaves out those that are not', async () => {
    const [one, two] = [await rig.create(), await rig.create({ tenant: 'b' })];
    await rig.append(one);
    const heads = await rig.log.heads([one, two, '00000000-0000-7000-8000-000000000000']);
    expect(heads).toHaveLength(2);
    expect(heads).toEqual(
      expect.arrayContaining([
        { runId: one, head: 1, status: 'running' },
        { runId: two, head: 0, status: 'running' },
      ]),
    );
  });
});
