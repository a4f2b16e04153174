import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { engine } from '@isthmus/protocol';
import { callerOf, until } from '@isthmus/testing';
import { EngineRig, shape } from './engine-rig.suite.js';

let rig: EngineRig;
beforeAll(async () => {
  rig = await EngineRig.start();
}, 30_000);
afterAll(() => rig?.stop());

const noops = ['a', 'b', 'c'].map((id) => ({ id, typeId: 'core.noop' }));

describe('a run', () => {
  it('writes its whole log in order, without gaps, with one terminal event at the end', async () => {
    await rig.register('three', noops, ['a>b', 'b>c']);
    const run = await rig.ended(await rig.create('three'));
    expect(shape(run.events)).toEqual([
      'run.started',
      'node.started:a',
      'node.completed:a',
      'node.started:b',
      'node.completed:b',
      'node.started:c',
      'node.completed:c',
      'run.completed',
    ]);
    expect(run.events?.map(({ sequence }) => sequence)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(run.snapshot).toMatchObject({
      status: 'completed',
      workflowId: 'three',
      workflowRevision: 1,
      owner: { tenant: callerOf().tenant },
    });
  });

  it('is answered with a status that has not ended, and is settled in one request when the asker holds', async () => {
    await rig.register('three', noops, ['a>b', 'b>c']);
    const created = await rig.call(engine.createRun, { workflowId: 'three', transport: 'mcp', trust: 'untrusted', holdMs: 2_000 });
    expect(created).toMatchObject({ status: 'running', replayed: false, settled: { is: 'completed', contentTrust: 'trusted' } });
  });

  it('runs parallel branches and joins them by the trigger rule', async () => {
    await rig.register(
      'fan',
      [
        { id: 'start', typeId: 'core.noop' },
        { id: 'left', typeId: 'core.delay', config: { delayMs: 30 } },
        { id: 'right', typeId: 'core.identity', inputs: { text: { type: 'variable', variableName: 'text' } } },
        { id: 'join', typeId: 'core.identity', inputs: { got: { type: 'connection', nodeId: 'right', outputKey: 'text' } } },
      ],
      ['start>left', 'start>right', 'left>join', 'right>join'],
      { variables: [{ name: 'text', type: 'string', required: true }] },
    );
    const run = await rig.ended(await rig.create('fan', { inputs: { text: 'hello' } }));
    expect(run.outcome).toEqual({ is: 'completed', outputs: { got: 'hello' }, contentTrust: 'trusted' });
  });

  it('takes the branch whose condition holds and skips the other one, with its reason', async () => {
    await rig.register(
      'choice',
      [
        { id: 'pick', typeId: 'core.identity', inputs: { n: { type: 'variable', variableName: 'n' } } },
        { id: 'big', typeId: 'core.noop' },
        { id: 'small', typeId: 'core.noop' },
        { id: 'after', typeId: 'core.noop' },
      ],
      [
        { id: 'e1', sourceNodeId: 'pick', targetNodeId: 'big', condition: { type: 'expression', expression: 'output.n > 10' } },
        { id: 'e2', sourceNodeId: 'pick', targetNodeId: 'small', condition: { expression: 'output.n <= 10' } },
        'small>after',
      ],
    );
    const run = await rig.ended(await rig.create('choice', { inputs: { n: 42 } }));
    expect(run.status).toBe('completed');
    expect(shape(run.events).filter((line) => line.startsWith('node.skipped'))).toEqual(['node.skipped:small', 'node.skipped:after']);
  });

  it('fails with the failing node, unless an edge is there to deal with it', async () => {
    const nodes = [
      { id: 'bad', typeId: 'core.fail', config: { code: 'no_luck', message: 'Nothing found.' } },
      { id: 'rescue', typeId: 'core.noop' },
    ];
    await rig.register('unlucky', nodes, ['bad>rescue']);
    const failed = await rig.ended(await rig.create('unlucky'));
    expect(failed.snapshot?.error).toEqual({ code: 'no_luck', message: 'Nothing found.' });
    expect(shape(failed.events).slice(-2)).toEqual(['node.failed:bad', 'run.failed']);

    await rig.register('rescued', nodes, [{ id: 'e', sourceNodeId: 'bad', targetNodeId: 'rescue', triggerRule: 'any_failed' }]);
    expect((await rig.ended(await rig.create('rescued'))).status).toBe('completed');
  });

  it('starts no node beyond the recursion limit and says which limit was reached', async () => {
    await rig.register('three', noops, ['a>b', 'b>c']);
    const run = await rig.ended(await rig.create('three', { configurable: { recursionLimit: 2 } }));
    expect(run.snapshot?.error?.code).toBe('recursion_limit_exceeded');
    expect(shape(run.events).filter((line) => line.startsWith('node.started'))).toHaveLength(2);
    expect(run.events?.find(({ type }) => type === 'cap.breached')?.payload).toMatchObject({
      kind: 'node-executions',
      limit: 2,
      observed: 3,
    });
  });

  it('ends when it takes longer than allowed, also while it sleeps', async () => {
    await rig.register('sleepy', [{ id: 'wait', typeId: 'core.delay', config: { delayMs: 60_000 } }]);
    const run = await rig.ended(await rig.create('sleepy', { configurable: { runTimeoutMs: 100 } }));
    expect(run.snapshot?.error?.code).toBe('run_timeout');
  });

  it('is cancelled while it sleeps, at once and only once', async () => {
    await rig.register('sleepy', [{ id: 'wait', typeId: 'core.delay', config: { delayMs: 60_000 } }]);
    const runId = await rig.create('sleepy');
    await until(async () => shape((await rig.read(runId)).events).includes('node.started:wait'));
    expect(await rig.call(engine.cancelRun, { runId, reason: 'changed my mind' })).toMatchObject({ status: 'cancelled', replayed: false });
    expect(await rig.call(engine.cancelRun, { runId })).toMatchObject({ status: 'cancelled', alreadyTerminal: true });
    const { events } = await rig.read(runId);
    expect(shape(events).at(-1)).toBe('run.cancelled');
    expect(shape(events).filter((line) => line.startsWith('run.'))).toEqual(['run.started', 'run.cancelled']);
  });

  it('stays on the revision it started with', async () => {
    await rig.register('moving', [{ id: 'gate', typeId: 'core.approvalGate' }]);
    const runId = await rig.create('moving');
    await rig.settled(runId);
    await rig.register('moving', [{ id: 'other', typeId: 'core.noop' }]);
    await rig.call(engine.resolveInterrupt, { runId, at: { nodeId: 'gate' }, resumeValue: { action: 'accept' } });
    const run = await rig.ended(runId);
    expect(run.snapshot).toMatchObject({ status: 'completed', workflowRevision: 1 });
    expect(shape((await rig.ended(await rig.create('moving'))).events)).toContain('node.completed:other');
  });

  it('is refused when inputs are missing or of a wrong type, and nothing exists then', async () => {
    await rig.register('typed', noops, [], { variables: [{ name: 'count', type: 'number', required: true }] });
    const before = (await rig.call(engine.listRuns, { workflowId: 'typed' })).runs.length;
    await expect(rig.create('typed')).rejects.toMatchObject({ code: 'validation_error', message: expect.stringContaining('inputs.count') });
    await expect(rig.create('typed', { inputs: { count: 'many' } })).rejects.toMatchObject({ code: 'validation_error' });
    await expect(rig.create('no-such')).rejects.toMatchObject({ code: 'validation_error', message: expect.stringContaining('no-such') });
    expect((await rig.call(engine.listRuns, { workflowId: 'typed' })).runs).toHaveLength(before);
  });

  it('exists once for one idempotency key, whoever asks first, and another request with the key is refused', async () => {
    await rig.register('three', noops, ['a>b', 'b>c']);
    const idempotency = { endpoint: 'POST /v1/runs', keyHash: 'k1', digest: 'd1' };
    const runs = await Promise.all(
      Array.from({ length: 8 }, () =>
        rig.call(engine.createRun, { workflowId: 'three', transport: 'rest', trust: 'trusted', idempotency }),
      ),
    );
    expect(new Set(runs.map(({ runId }) => runId)).size).toBe(1);
    expect(runs.filter(({ replayed }) => !replayed)).toHaveLength(1);
    await expect(rig.create('three', { idempotency: { ...idempotency, digest: 'd2' } })).rejects.toMatchObject({
      code: 'idempotency_key_mismatch',
    });
    const elsewhere = await rig.call(engine.createRun, {
      workflowId: 'three',
      transport: 'rest',
      trust: 'trusted',
      idempotency: { ...idempotency, endpoint: 'other' },
    });
    expect(elsewhere.replayed).toBe(false);
  });
});

describe('an approval gate', () => {
  const gate = (config: object = {}) => [
    { id: 'gate', typeId: 'core.approvalGate', config, inputs: { draft: { type: 'static', value: 'text' } } },
  ];

  it('waits, shows what is to be approved, and goes on with the decision of an authenticated principal', async () => {
    await rig.register('gated', gate({ title: 'Publish?' }));
    const runId = await rig.create('gated');
    const waiting = await rig.settled(runId);
    expect(waiting.snapshot).toMatchObject({
      status: 'waiting-approval',
      currentNodeId: 'gate',
      interrupt: { nodeId: 'gate', kind: 'approval', payload: { title: 'Publish?', artifactData: { draft: 'text' } } },
    });
    await rig.call(engine.resolveInterrupt, {
      runId,
      at: { nodeId: 'gate' },
      resumeValue: { action: 'accept', decidedBy: 'somebody else' },
    });
    const { events, snapshot } = await rig.ended(runId);
    expect(shape(events)).toEqual([
      'run.started',
      'node.started:gate',
      'interrupt.requested:gate',
      'approval.requested:gate',
      'node.suspended:gate',
      'approval.received:gate',
      'interrupt.resolved:gate',
      'node.resumed:gate',
      'node.completed:gate',
      'run.completed',
    ]);
    expect(events?.find(({ type }) => type === 'approval.received')?.payload).toMatchObject({ decidedBy: callerOf().principal });
    expect(snapshot?.variables['gate']).toMatchObject({ action: 'accept', decidedBy: callerOf().principal });
  });

  it('is answered once: the first of many wins and the others are told so', async () => {
    await rig.register('gated', gate());
    const runId = await rig.create('gated');
    await rig.settled(runId);
    const answers = await Promise.allSettled(
      Array.from({ length: 6 }, () =>
        rig.call(engine.resolveInterrupt, { runId, at: { nodeId: 'gate' }, resumeValue: { action: 'accept' } }),
      ),
    );
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const answer of answers)
      if (answer.status === 'rejected') expect(answer.reason).toMatchObject({ code: 'interrupt_already_resolved' });
  });

  it('fails the run when rejected, unless the graph routes on the decision', async () => {
    await rig.register('gated', gate());
    const rejected = await rig.create('gated');
    await rig.settled(rejected);
    await rig.call(engine.resolveInterrupt, {
      runId: rejected,
      at: { nodeId: 'gate' },
      resumeValue: { action: 'reject', comment: 'too long' },
    });
    expect((await rig.ended(rejected)).snapshot?.error).toMatchObject({
      code: 'approval_rejected',
      message: expect.stringContaining('too long'),
    });

    await rig.register(
      'routed',
      [...gate(), { id: 'redo', typeId: 'core.noop' }],
      [{ id: 'no', sourceNodeId: 'gate', targetNodeId: 'redo', condition: { left: 'output.action', right: 'reject' } }],
    );
    const routed = await rig.create('routed');
    await rig.settled(routed);
    await rig.call(engine.resolveInterrupt, { runId: routed, at: { nodeId: 'gate' }, resumeValue: { action: 'reject' } });
    expect(shape((await rig.ended(routed)).events)).toContain('node.completed:redo');
  });

  it('refuses an action it does not offer, an approver it does not name, and a refinement without words; it stays open', async () => {
    await rig.register('named', gate({ approversList: ['user-else'], actions: ['accept', 'refine'] }));
    const runId = await rig.create('named');
    await rig.settled(runId);
    const answer = (resumeValue: object, caller?: ReturnType<typeof callerOf>) =>
      rig.call(engine.resolveInterrupt, { runId, at: { nodeId: 'gate' }, resumeValue: resumeValue as never }, caller);
    await expect(answer({ action: 'accept' })).rejects.toMatchObject({ code: 'forbidden' });
    const named = callerOf({ principal: 'user-else' });
    await expect(answer({ action: 'reject' }, named)).rejects.toMatchObject({ code: 'validation_error' });
    await expect(answer({ action: 'refine' }, named)).rejects.toMatchObject({ code: 'validation_error' });
    expect((await rig.read(runId)).status).toBe('waiting-approval');
    await answer({ action: 'accept' }, named);
    expect((await rig.ended(runId)).status).toBe('completed');
  });

  it('counts distinct voters until the quorum is met', async () => {
    await rig.register('quorum', gate({ requiredApprovals: 2 }));
    const runId = await rig.create('quorum');
    await rig.settled(runId);
    const vote = (principal: string) =>
      rig.call(engine.resolveInterrupt, { runId, at: { nodeId: 'gate' }, resumeValue: { action: 'accept' } }, callerOf({ principal }));
    expect((await vote('user-1')).status).toBe('waiting-approval');
    expect((await vote('user-1')).status).toBe('waiting-approval');
    await vote('user-2');
    expect((await rig.ended(runId)).status).toBe('completed');
  });

  it('answers a dead gate with the code of its end', async () => {
    await rig.register('gated', gate());
    const runId = await rig.create('gated');
    await rig.settled(runId);
    await rig.call(engine.cancelRun, { runId });
    const answer = rig.call(engine.resolveInterrupt, { runId, at: { nodeId: 'gate' }, resumeValue: { action: 'accept' } });
    await expect(answer).rejects.toMatchObject({ code: 'interrupt_cancelled' });
    await expect(rig.call(engine.resolveInterrupt, { runId, at: { nodeId: 'nobody' }, resumeValue: {} })).rejects.toMatchObject({
      code: 'interrupt_not_found',
    });
  });
});

describe('a clarification gate', () => {
  it('takes both forms of answers and gives them to the graph', async () => {
    await rig.register('asks', [
      { id: 'ask', typeId: 'core.clarificationGate', config: { questions: [{ id: 'q1', question: 'Which colour?' }] } },
    ]);
    for (const answers of [{ q1: 'blue' }, [{ id: 'q1', answer: 'blue' }]]) {
      const runId = await rig.create('asks');
      expect((await rig.settled(runId)).snapshot).toMatchObject({ status: 'waiting-input', currentNodeId: 'ask' });
      await expect(rig.call(engine.resolveInterrupt, { runId, at: { nodeId: 'ask' }, resumeValue: { answers: {} } })).rejects.toMatchObject(
        { code: 'validation_error' },
      );
      await rig.call(engine.resolveInterrupt, { runId, at: { nodeId: 'ask' }, resumeValue: { answers } as never });
      const run = await rig.ended(runId);
      expect(run.outcome).toMatchObject({ is: 'completed', outputs: { q1: 'blue', answers: { q1: 'blue' } } });
      expect(run.events?.find(({ type }) => type === 'clarification.resolved')?.payload).toMatchObject({ answers: { q1: 'blue' } });
    }
  });
});

describe('another tenant or workspace', () => {
  it('finds no run, no workflow and no list entry', async () => {
    await rig.register('three', noops, ['a>b', 'b>c']);
    const runId = await rig.create('three');
    for (const stranger of [callerOf({ tenant: 'globex' }), callerOf({ workspace: 'other' })]) {
      await expect(rig.read(runId, stranger)).rejects.toMatchObject({ code: 'not_found' });
      await expect(rig.call(engine.cancelRun, { runId }, stranger)).rejects.toMatchObject({ code: 'not_found' });
      await expect(rig.call(engine.resolveInterrupt, { runId, at: { nodeId: 'a' }, resumeValue: {} }, stranger)).rejects.toMatchObject({
        code: 'not_found',
      });
      await expect(rig.call(engine.getWorkflow, { workflowId: 'three' }, stranger)).rejects.toMatchObject({ code: 'not_found' });
      await expect(rig.create('three', {}, stranger)).rejects.toMatchObject({ code: 'validation_error' });
      expect((await rig.call(engine.listRuns, {}, stranger)).runs).toEqual([]);
      expect((await rig.call(engine.listWorkflows, {}, stranger)).workflows).toEqual([]);
    }
  });
});
