import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { authz, engine, type JsonObject, mcpClient } from '@isthmus/protocol';
import { answer, callerOf, until } from '@isthmus/testing';
import { EngineRig, shape } from './engine-rig.suite.js';

let rig: EngineRig;
let toolCalls = 0;
const stops: (() => void)[] = [];
beforeAll(async () => {
  rig = await EngineRig.start(2);
  stops.push(
    answer(rig.connection, mcpClient.callTool, () => {
      toolCalls += 1;
      return {
        is: 'complete' as const,
        result: { content: [{ type: 'text', text: `answer ${toolCalls}` }] },
        isError: false,
        negotiatedVersion: '2026-07-28',
      };
    }),
    answer(rig.connection, authz.delegate, async (asked) => {
      const { tenant, workspace } = asked;
      const caller = callerOf({ tenant, workspace, ...(asked.for === 'principal' && { principal: asked.principal }) });
      return { token: await rig.issuer.passport(caller), caller, expiresInMs: 60_000 };
    }),
  );
}, 30_000);
afterAll(async () => {
  for (const stop of stops) stop();
  await rig?.stop();
});

const delay = (id: string, delayMs: number) => ({ id, typeId: 'core.delay', config: { delayMs } });
const noop = (id: string) => ({ id, typeId: 'core.noop' });
const resolve = (runId: string, nodeId: string, resumeValue: object) =>
  rig.call(engine.resolveInterrupt, { runId, at: { nodeId }, resumeValue: resumeValue as JsonObject });

describe('a node that fails', () => {
  it('is tried again as often as its settings say, later each time, and every attempt stands in the log', async () => {
    await rig.register('stubborn', [{ id: 'bad', typeId: 'core.fail', settings: { maxRetries: 2, retryDelayMs: 10 } } as never]);
    const run = await rig.ended(await rig.create('stubborn'));
    expect(shape(run.events)).toEqual([
      'run.started',
      'node.started:bad',
      'node.retried:bad',
      'node.started:bad',
      'node.retried:bad',
      'node.started:bad',
      'node.failed:bad',
      'run.failed',
    ]);
    const retried = run.events
      ?.filter(({ type }) => type === 'node.retried')
      .map(({ payload }) => payload as { attempt: number; delayMs: number });
    expect(retried?.map(({ attempt, delayMs }) => [attempt, delayMs])).toEqual([
      [1, 10],
      [2, 20],
    ]);
    expect(
      run.events?.filter(({ type }) => type === 'node.started').map(({ payload }) => (payload as { attempt: number }).attempt),
    ).toEqual([0, 1, 2]);
  });

  it('is not tried again where trying cannot help', async () => {
    await rig.register('hopeless', [{ id: 'gate', typeId: 'core.approvalGate' }], [], { settings: { maxRetries: 3 } });
    const runId = await rig.create('hopeless');
    await rig.settled(runId);
    await resolve(runId, 'gate', { action: 'reject' });
    expect(shape((await rig.ended(runId)).events)).not.toContain('node.retried:gate');
  });
});

describe('channels', () => {
  it('fold by their reducer and drop what has expired, by recorded times', async () => {
    const write = (id: string, value: string) => ({
      id,
      typeId: 'core.channelWrite',
      config: { channelName: 'events', reducer: 'append', ttlMs: 200, value },
    });
    await rig.register(
      'ttl',
      [write('a', 'a'), write('b', 'b'), write('c', 'c'), delay('wait', 300), write('d', 'd')],
      ['a>b', 'b>c', 'c>wait', 'wait>d'],
    );
    const run = await rig.ended(await rig.create('ttl'));
    expect(run.snapshot?.channels).toEqual({ events: ['d'] });
    expect(run.events?.filter(({ type }) => type === 'channel.written').map(({ payload }) => (payload as JsonObject)['value'])).toEqual([
      'a',
      'b',
      'c',
      'd',
    ]);
  });

  it('refuse a writer they do not name', async () => {
    await rig.register('guarded', [{ id: 'w', typeId: 'core.channelWrite', config: { channelName: 'log', value: 1 } }], [], {
      channels: { log: { reducer: 'append', access: { writers: ['someone-else'] } } },
    });
    expect((await rig.ended(await rig.create('guarded'))).snapshot?.error?.code).toBe('channel_access_denied');
  });
});

describe('a sub-workflow', () => {
  const parent = (config: object = {}) => [
    { id: 'call', typeId: 'core.subWorkflow', config: { workflowId: 'child', ...config } },
    noop('after'),
  ];

  it('gets its inputs, gives its outputs back, and is linked to its parent both ways', async () => {
    await rig.register(
      'child',
      [
        delay('work', 60),
        {
          id: 'set',
          typeId: 'core.setVariable',
          config: { variableName: 'result' },
          inputs: { value: { type: 'expression', expression: '"for " + inputs.who' } },
        },
      ],
      ['work>set'],
    );
    await rig.register('parent', parent({ inputMapping: { who: 'name' }, outputMapping: { outcome: 'result' } }), ['call>after']);
    const run = await rig.ended(await rig.create('parent', { inputs: { name: 'Ada' } }));
    expect(run.snapshot).toMatchObject({ status: 'completed', variables: { outcome: 'for Ada', call: { childStatus: 'completed' } } });
    expect(shape(run.events)).toContain('node.dispatched:call');
    const { childRunId } = (run.snapshot?.variables['call'] ?? {}) as { childRunId: string };
    expect(run.snapshot?.childRuns).toEqual([{ runId: childRunId, status: 'completed' }]);
    expect((await rig.read(childRunId)).snapshot).toMatchObject({ parentRunId: run.runId, parentNodeId: 'call' });
  });

  it('fails its parent, or is absorbed, as the node says; an unknown one fails with its code', async () => {
    await rig.register('child', [{ id: 'bad', typeId: 'core.fail' }]);
    await rig.register('parent', parent(), ['call>after']);
    expect((await rig.ended(await rig.create('parent'))).snapshot?.error?.code).toBe('child_failed');
    await rig.register('parent', parent({ onChildFailure: 'absorb' }), ['call>after']);
    expect((await rig.ended(await rig.create('parent'))).snapshot?.variables['call']).toMatchObject({ childStatus: 'failed' });
    await rig.register('parent', parent({ workflowId: 'nowhere' }), ['call>after']);
    expect((await rig.ended(await rig.create('parent'))).snapshot?.error?.code).toBe('unknown_child_workflow');
  });

  it('goes with its parent when that is cancelled, unless the node keeps it; its interrupt is gone then', async () => {
    await rig.register('child', [{ id: 'gate', typeId: 'core.approvalGate' }]);
    for (const propagateCancellation of [true, false]) {
      await rig.register('parent', parent({ propagateCancellation }), ['call>after']);
      const runId = await rig.create('parent');
      const childOf = async () => (await rig.read(runId)).snapshot?.childRuns?.[0]?.runId;
      await until(childOf);
      const child = (await childOf()) ?? '';
      await until(async () => (await rig.read(child)).status === 'waiting-approval');
      await rig.call(engine.cancelRun, { runId });
      if (propagateCancellation) {
        const ended = await rig.ended(child);
        expect(ended.events?.at(-1)).toMatchObject({ type: 'run.cancelled', payload: { reason: 'parent-cancelled', parentRunId: runId } });
        await expect(resolve(child, 'gate', { action: 'accept' })).rejects.toMatchObject({ code: 'interrupt_gone' });
      } else {
        await resolve(child, 'gate', { action: 'accept' });
        expect((await rig.ended(child)).status).toBe('completed');
      }
    }
  });
});

describe('a pause', () => {
  it('lets the current node finish, begins no other, and ends with a resume', async () => {
    await rig.register('long', [delay('first', 250), noop('second')], ['first>second']);
    const runId = await rig.create('long');
    await until(async () => shape((await rig.read(runId)).events).includes('node.started:first'));
    expect(await rig.call(engine.pauseRun, { runId })).toMatchObject({ status: 'paused' });
    await until(async () => (await rig.read(runId)).status === 'paused');
    expect(shape((await rig.read(runId)).events)).toEqual(['run.started', 'node.started:first', 'node.completed:first', 'run.paused']);
    await expect(rig.call(engine.pauseRun, { runId })).rejects.toMatchObject({
      code: 'run_state_conflict',
      details: { runStatus: 'paused' },
    });
    await rig.call(engine.resumeRun, { runId });
    expect(shape((await rig.ended(runId)).events).slice(-3)).toEqual(['node.started:second', 'node.completed:second', 'run.completed']);
    await expect(rig.call(engine.resumeRun, { runId })).rejects.toMatchObject({ code: 'run_terminal' });
  });

  it('takes effect at once when asked to, and a sleeper sleeps on by its own clock', async () => {
    await rig.register('long', [delay('first', 400), noop('second')], ['first>second']);
    const runId = await rig.create('long');
    await until(async () => shape((await rig.read(runId)).events).includes('node.started:first'));
    await rig.call(engine.pauseRun, { runId, drainPolicy: 'immediate' });
    expect((await rig.read(runId)).status).toBe('paused');
    await rig.call(engine.resumeRun, { runId });
    expect((await rig.ended(runId)).status).toBe('completed');
  });

  it('leaves a run that waits for people in their status, and they may answer', async () => {
    await rig.register('gated', [{ id: 'gate', typeId: 'core.approvalGate' }, noop('after')], ['gate>after']);
    const runId = await rig.create('gated');
    await rig.settled(runId);
    await rig.call(engine.pauseRun, { runId });
    expect((await rig.read(runId)).status).toBe('waiting-approval');
    await resolve(runId, 'gate', { action: 'accept' });
    expect((await rig.read(runId)).status).toBe('paused');
    await rig.call(engine.resumeRun, { runId });
    expect((await rig.ended(runId)).status).toBe('completed');
  });

  it('can be cancelled', async () => {
    await rig.register('gated', [{ id: 'gate', typeId: 'core.approvalGate' }]);
    const runId = await rig.create('gated');
    await rig.settled(runId);
    await rig.call(engine.pauseRun, { runId });
    expect(await rig.call(engine.cancelRun, { runId })).toMatchObject({ status: 'cancelled' });
  });
});

describe('a replay', () => {
  const listing = (events: Awaited<ReturnType<EngineRig['read']>>['events']) =>
    events?.map(({ type, nodeId, payload }) => ({ type, nodeId, payload }));

  it('calls nobody and asks nobody, and two of them are equal', async () => {
    await rig.register(
      'rich',
      [
        { id: 'tool', typeId: 'core.openwop.mcp.invoke-tool', config: { serverId: 's', toolName: 't' } },
        { id: 'gate', typeId: 'core.approvalGate', inputs: { found: { type: 'connection', nodeId: 'tool', outputKey: 'result' } } },
        delay('wait', 50),
        { id: 'ask', typeId: 'core.clarificationGate', config: { questions: [{ id: 'q', question: '?' }] } },
      ],
      ['tool>gate', 'gate>wait', 'wait>ask'],
    );
    const source = await rig.create('rich');
    await rig.settled(source);
    await resolve(source, 'gate', { action: 'accept', comment: 'fine' });
    await until(async () => (await rig.read(source)).status === 'waiting-input');
    await resolve(source, 'ask', { answers: { q: 'yes' } });
    const original = await rig.ended(source);
    const before = toolCalls;
    const forks = await Promise.all([1, 2].map(() => rig.call(engine.forkRun, { runId: source, mode: 'replay', fromSeq: 0 })));
    const [one, two] = await Promise.all(forks.map(({ runId }) => rig.ended(runId)));
    expect(one?.snapshot?.error).toBeUndefined();
    expect(listing(one?.events)).toEqual(listing(two?.events));
    expect(listing(one?.events)).toEqual(listing(original.events));
    expect(one?.outcome).toEqual(original.outcome);
    expect(one?.snapshot).toMatchObject({ sourceRunId: source, mode: 'replay' });
    expect(toolCalls).toBe(before);
  });

  it('fails closed where nothing was recorded, and refuses points that are not there', async () => {
    await rig.register(
      'cut',
      [delay('wait', 60_000), { id: 'tool', typeId: 'core.openwop.mcp.invoke-tool', config: { serverId: 's', toolName: 't' } }],
      ['wait>tool'],
    );
    const source = await rig.create('cut');
    await until(async () => shape((await rig.read(source)).events).includes('node.started:wait'));
    await rig.call(engine.cancelRun, { runId: source });
    const before = toolCalls;
    const { runId } = await rig.call(engine.forkRun, { runId: source, mode: 'replay', fromSeq: 0 });
    const replay = await rig.ended(runId);
    expect(replay.events?.find(({ type }) => type === 'node.failed')).toMatchObject({
      nodeId: 'tool',
      payload: { error: { code: 'replay_source_missing' } },
    });
    expect(toolCalls).toBe(before);
    await expect(rig.call(engine.forkRun, { runId: source, mode: 'replay', fromSeq: 99_999 })).rejects.toMatchObject({
      code: 'fork_point_invalid',
    });
    await expect(rig.call(engine.forkRun, { runId: source, mode: 'replay', fromSeq: 0, overlay: { tags: ['x'] } })).rejects.toMatchObject({
      code: 'validation_error',
    });
    await expect(
      rig.call(engine.forkRun, { runId: source, mode: 'replay', fromSeq: 0 }, callerOf({ tenant: 'globex' })),
    ).rejects.toMatchObject({ code: 'not_found' });
  });

  it('as a branch goes on differently from its point, and calls anew', async () => {
    await rig.register(
      'branchy',
      [{ id: 'tool', typeId: 'core.openwop.mcp.invoke-tool', config: { serverId: 's', toolName: 't' } }, noop('after')],
      ['tool>after'],
    );
    const source = await rig.ended(await rig.create('branchy'));
    const before = toolCalls;
    const { runId } = await rig.call(engine.forkRun, { runId: source.runId, mode: 'branch', fromSeq: 1, overlay: { tags: ['again'] } });
    const branch = await rig.ended(runId);
    expect(branch.snapshot?.error).toBeUndefined();
    expect(branch.snapshot?.tags).toEqual(['again']);
    expect(toolCalls).toBe(before + 1);
    const late = source.events?.find(({ type, nodeId }) => type === 'node.completed' && nodeId === 'tool')?.sequence ?? 0;
    const after = await rig.call(engine.forkRun, { runId: source.runId, mode: 'branch', fromSeq: late + 1 });
    expect((await rig.ended(after.runId)).status).toBe('completed');
    expect(toolCalls).toBe(before + 1);
  });
});

describe('other ways of waiting', () => {
  it('an external event is answered by whoever knows its correlation, by token too', async () => {
    await rig.register('outside', [
      {
        id: 'wait',
        typeId: 'core.interrupt',
        config: { kind: 'external-event', data: { eventType: 'paid', correlation: { orderId: 'o1', status: 'completed' } } },
      },
    ]);
    const runId = await rig.create('outside');
    const waiting = await rig.settled(runId);
    expect(waiting.status).toBe('waiting-external');
    const token = waiting.snapshot?.interrupt?.interruptToken ?? '';
    expect(waiting.snapshot?.interrupt?.callbackUrl).toBe(`/v1/interrupts/${token}`);
    expect(JSON.stringify(waiting.events)).not.toContain(token);
    expect(await rig.call(engine.inspectToken, { token })).toMatchObject({ runId, interrupt: { kind: 'external-event' } });
    await expect(rig.call(engine.resolveToken, { token, resumeValue: { orderId: 'o2', status: 'completed' } })).rejects.toMatchObject({
      code: 'interrupt_mismatch',
    });
    expect((await rig.read(runId)).status).toBe('waiting-external');
    await expect(rig.call(engine.resolveToken, { token: `${token}x`, resumeValue: {} })).rejects.toMatchObject({
      code: 'interrupt_token_invalid',
    });
    await rig.call(engine.resolveToken, { token, resumeValue: { orderId: 'o1', status: 'completed', extra: true } });
    const run = await rig.ended(runId);
    expect(run.events?.find(({ type }) => type === 'interrupt.resolved')?.payload).toMatchObject({
      resolvedBy: expect.stringMatching(/^token:/),
    });
    await expect(rig.call(engine.resolveToken, { token, resumeValue: { orderId: 'o1', status: 'completed' } })).rejects.toMatchObject({
      code: 'interrupt_already_resolved',
    });
  });

  it('shows a token only to callers that may answer', async () => {
    await rig.register('gated', [{ id: 'gate', typeId: 'core.approvalGate' }]);
    const runId = await rig.create('gated');
    await rig.settled(runId);
    expect((await rig.read(runId)).snapshot?.interrupt?.interruptToken).toBeDefined();
    expect((await rig.read(runId, callerOf({ scopes: ['runs:read'] }))).snapshot?.interrupt?.interruptToken).toBeUndefined();
  });

  it('a gate that asks for a credential takes no token', async () => {
    await rig.register('strict', [{ id: 'gate', typeId: 'core.approvalGate', config: { profile: 'openwop-interrupt-auth-required' } }]);
    const runId = await rig.create('strict');
    const token = (await rig.settled(runId)).snapshot?.interrupt?.interruptToken ?? '';
    await expect(rig.call(engine.resolveToken, { token, resumeValue: { action: 'accept' } })).rejects.toMatchObject({ code: 'forbidden' });
    await resolve(runId, 'gate', { action: 'accept' });
    expect((await rig.ended(runId)).status).toBe('completed');
  });

  it('a gate that nobody answers in time is a rejection', async () => {
    await rig.register('hurried', [{ id: 'gate', typeId: 'core.approvalGate', config: { timeoutMs: 80 } }]);
    const run = await rig.ended(await rig.create('hurried'));
    expect(run.snapshot?.error?.code).toBe('approval_rejected');
    expect(run.events?.find(({ type }) => type === 'interrupt.resolved')?.payload).toMatchObject({
      outcome: 'rejected',
      reason: 'timeout',
    });
    expect(run.events?.find(({ type }) => type === 'approval.received')?.payload).toMatchObject({ action: 'timeout' });
  });

  it('a governed gate is decided by those with its scope, and an override says why', async () => {
    const gate = {
      id: 'gate',
      typeId: 'core.openwop.governance.approvalGate',
      config: { requiredScope: 'packs:publish', quorum: 2, override: { requiredRole: 'scope:packs:yank' }, overrideBypassesQuorum: true },
    };
    await rig.register('governed', [gate]);
    const runId = await rig.create('governed');
    await rig.settled(runId);
    const as = (principal: string, scopes: string[]) =>
      callerOf({ principal, scopes: ['approvals:respond', 'runs:read', ...scopes] as never });
    const decide = (caller: ReturnType<typeof callerOf>, resumeValue: object) =>
      rig.call(engine.resolveInterrupt, { runId, at: { nodeId: 'gate' }, resumeValue: resumeValue as JsonObject }, caller);
    await expect(decide(as('outsider', []), { decision: 'granted' })).rejects.toMatchObject({ code: 'forbidden' });
    await decide(as('one', ['packs:publish']), { decision: 'granted' });
    expect((await rig.read(runId)).status).toBe('waiting-approval');
    await expect(decide(as('boss', ['packs:yank']), { decision: 'overridden' })).rejects.toMatchObject({ code: 'validation_error' });
    await decide(as('boss', ['packs:yank']), { decision: 'overridden', reason: 'an emergency' });
    const run = await rig.ended(runId);
    expect(run.status).toBe('completed');
    expect(shape(run.events)).not.toContain('approval.requested:gate');
    expect(run.events?.map(({ type }) => type)).toEqual(expect.arrayContaining(['approval.granted', 'approval.overridden']));
  });
});

describe('secrets in inputs', () => {
  it('are given to nodes and shown to nobody', async () => {
    await rig.register(
      'secretive',
      [
        {
          id: 'use',
          typeId: 'core.identity',
          inputs: { key: { type: 'variable', variableName: 'key' }, token: { type: 'variable', variableName: 'free' } },
        },
        { id: 'pick', typeId: 'core.noop' },
      ],
      [{ id: 'e', sourceNodeId: 'use', targetNodeId: 'pick', condition: { expression: 'output.key == "hunter2-hunter2"' } }],
      { variables: [{ name: 'key', type: 'string', sensitive: true }] },
    );
    const run = await rig.ended(await rig.create('secretive', { inputs: { key: 'hunter2-hunter2', free: 'sk-abcdefghijklmnop1234' } }));
    expect(shape(run.events)).toContain('node.completed:pick');
    expect(JSON.stringify(run)).not.toContain('hunter2');
    expect(JSON.stringify(run)).not.toContain('abcdefghijklmnop');
    expect(run.snapshot?.variables).toMatchObject({ key: '[REDACTED]', free: '[REDACTED]' });
  });
});
