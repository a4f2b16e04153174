import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { engine } from '@isthmus/protocol';
import { callerOf, until } from '@isthmus/testing';
import type pg from 'pg';
import { EngineRig, shape } from '../engine-rig.suite.js';
import { administrator, expectWhole } from './driver-rig.suite.js';

let rig: EngineRig;
let admin: pg.Pool;
beforeAll(async () => {
  rig = await EngineRig.start();
  admin = await administrator(rig);
}, 30_000);
afterAll(async () => {
  await admin?.end();
  await rig?.stop();
});

const chain = (length: number) => {
  const ids = Array.from({ length }, (_, index) => `n${index}`);
  return [
    ids.map((id) => ({ id, typeId: 'core.noop' })),
    ids.slice(1).map((id, index) => ({ id: `e${index}`, sourceNodeId: `n${index}`, targetNodeId: id })),
  ] as const;
};

describe('a long chain of nodes that run at once', () => {
  it('completes in bounded passes: several appends, none of more than a hundred nodes', async () => {
    await rig.register('long', ...chain(400));
    const runId = await rig.create('long');
    const run = await rig.ended(runId, 30_000);
    expect(run.status).toBe('completed');
    const { rows } = await admin.query<{ nodes: number }>(
      `select count(*) filter (where type = 'node.started')::int as nodes from engine.events where run_id = $1 group by xmin::text`,
      [runId],
    );
    expect(rows.length).toBeGreaterThanOrEqual(4);
    for (const { nodes } of rows) expect(nodes).toBeLessThanOrEqual(100);
    expect(rows.reduce((sum, { nodes }) => sum + nodes, 0)).toBe(400);
  }, 40_000);

  it('keeps no other tenant waiting: a short run that starts later ends first', async () => {
    await rig.register('longest', ...chain(1_000));
    const other = callerOf({ tenant: 'globex' });
    await rig.register('short', [{ id: 'a', typeId: 'core.noop' }], [], {}, other);
    const long = await Promise.all([rig.create('longest'), rig.create('longest')]);
    const short = await rig.create('short', {}, other);
    await until(async () => (await rig.read(short, other)).status === 'completed');
    for (const runId of long) await rig.ended(runId, 60_000);
    const { rows } = await admin.query<{ run_id: string }>(
      'select run_id from engine.runs where run_id = any($1) order by ended_at limit 1',
      [[short, ...long]],
    );
    expect(rows[0]?.run_id).toBe(short);
  }, 80_000);

  it('is cancelled between two passes, and nothing runs after that', async () => {
    await rig.register('longest', ...chain(1_000));
    const runId = await rig.create('longest');
    expect(await rig.call(engine.cancelRun, { runId })).toMatchObject({ status: 'cancelled' });
    const { rows } = await admin.query<{ type: string; head: number }>(
      'select type, sequence as head from engine.events where run_id = $1 order by sequence desc limit 1',
      [runId],
    );
    expect(rows[0]?.type).toBe('run.cancelled');
    expect(rows[0]?.head).toBeLessThan(2_000);
    // The driver has let go: another run of the same engine goes on, and this log stays as it is.
    await rig.register('after', ...chain(3));
    await rig.ended(await rig.create('after'));
    expect((await rig.read(runId)).head).toBe(rows[0]?.head);
  }, 30_000);
});

describe('a run whose nodes are disabled', () => {
  it.each<[string, object[], string[], string[]]>([
    ['all of them', [{ id: 'a', typeId: 'core.noop', disabled: true }], [], ['run.started', 'node.skipped:a', 'run.completed']],
    [
      'the first of them',
      [
        { id: 'a', typeId: 'core.noop', disabled: true },
        { id: 'b', typeId: 'core.noop' },
        { id: 'c', typeId: 'core.noop' },
      ],
      ['a>b'],
      ['run.started', 'node.skipped:a', 'node.skipped:b', 'node.started:c', 'node.completed:c', 'run.completed'],
    ],
  ])('completes: %s', async (_which, nodes, edges, log) => {
    await rig.register('disabled', nodes as never, edges);
    const run = await rig.ended(await rig.create('disabled'));
    expect(shape(run.events)).toEqual(log);
  });
});

describe('names that authors choose', () => {
  it('never make one value of two, however they are put together', async () => {
    const text = (word: string) => word.repeat(20_000);
    const set = (id: string, name: string, word: string) => ({ id, typeId: 'core.setVariable', config: { name, value: text(word) } });
    await rig.register('colons', [set('c', 'a:b', 'x'), set('b:c', 'a', 'y')], []);
    const run = await rig.ended(await rig.create('colons'));
    expect(run.status).toBe('completed');
    expect(run.snapshot?.variables).toMatchObject({ 'a:b': text('x'), a: text('y') });
  });

  it('may be those that every object has: the verdict over an edge counts all the same', async () => {
    for (const id of ['__proto__', 'constructor', 'toString']) {
      await rig.register(
        'named',
        [
          { id: 'a', typeId: 'core.noop' },
          { id: 'b', typeId: 'core.noop' },
        ],
        [{ id, sourceNodeId: 'a', targetNodeId: 'b', condition: { left: 'status', right: 'never' } }],
      );
      expect(shape((await rig.ended(await rig.create('named'))).events)).toContain('node.skipped:b');
    }
  });

  it('bring a value to a port of any name', async () => {
    await rig.register(
      'ports',
      [
        { id: 'a', typeId: 'core.identity', inputs: { x: { type: 'static', value: 1 } } },
        { id: 'b', typeId: 'core.identity' },
      ],
      [
        { id: 'e1', sourceNodeId: 'a', targetNodeId: 'b', sourceOutput: 'x', targetInput: 'constructor' },
        { id: 'e2', sourceNodeId: 'a', targetNodeId: 'b', sourceOutput: 'x', targetInput: '__proto__' },
      ],
    );
    const run = await rig.ended(await rig.create('ports'));
    expectWhole(run.events);
    expect(run.outcome).toMatchObject({ is: 'completed', outputs: { constructor: 1 } });
  });
});

describe('an expression that cannot be evaluated', () => {
  it('in a port or a condition fails its node with what is wrong, and the run goes where failures go', async () => {
    const a = { id: 'a', typeId: 'core.identity', inputs: { x: { type: 'static', value: 'text' } } };
    await rig.register('bad-port', [
      { id: 'a', typeId: 'core.identity', inputs: { x: { type: 'expression', expression: 'inputs.missing' } } },
    ]);
    expect((await rig.ended(await rig.create('bad-port'))).snapshot?.error).toMatchObject({
      code: 'expression_failed',
      message: expect.stringContaining('"x"'),
    });

    await rig.register(
      'bad-edge',
      [a, { id: 'b', typeId: 'core.noop' }],
      [{ id: 'e', sourceNodeId: 'a', targetNodeId: 'b', condition: { expression: 'output.x > 3' } }],
    );
    const failed = await rig.ended(await rig.create('bad-edge'));
    expect(failed.snapshot?.error).toMatchObject({ code: 'expression_failed', message: expect.stringContaining('"e"') });
    expect(shape(failed.events)).toEqual(['run.started', 'node.started:a', 'node.failed:a', 'run.failed']);
  });
});
