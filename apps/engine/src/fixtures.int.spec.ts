import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { authz, engine, type JsonObject, mcpClient, type RunEvent, type RunStatus, WorkflowDefinition } from '@isthmus/protocol';
import { answer, callerOf, until } from '@isthmus/testing';
import { type Fixture, fixturesFor } from '../../../tools/fixtures.mjs';
import { EngineRig, shape } from './engine-rig.suite.js';

/** The fixtures of conformance suites, each run to what the suites expect of it. */
const FIXTURES = fixturesFor({ mcpServerUrl: 'http://127.0.0.1:1/' });
const proven = new Set<string>();

let rig: EngineRig;
const called: { serverId: string; toolName: string; arguments: JsonObject }[] = [];
const stops: (() => void)[] = [];
beforeAll(async () => {
  rig = await EngineRig.start();
  stops.push(
    answer(rig.connection, mcpClient.callTool, ({ serverId, toolName, arguments: args }) => {
      called.push({ serverId, toolName, arguments: args });
      return {
        is: 'complete' as const,
        result: { content: [{ type: 'text', text: 'said' }] },
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
  for (const fixture of FIXTURES) await rig.call(engine.putWorkflow, { definition: WorkflowDefinition.parse(fixture) });
}, 30_000);
afterAll(async () => {
  for (const stop of stops) stop();
  await rig?.stop();
});

type Options = { inputs?: JsonObject; configurable?: JsonObject };
async function start(id: string, options: Options = {}): Promise<string> {
  proven.add(id);
  return rig.create(id, options);
}
const ended = async (id: string, options?: Options) => rig.ended(await start(id, options));
async function waiting(id: string) {
  const runId = await start(id);
  await until(async () => (await rig.read(runId)).status.startsWith('waiting-'));
  return rig.read(runId);
}
const resolve = (runId: string, nodeId: string, resumeValue: JsonObject, caller = callerOf()) =>
  rig.call(engine.resolveInterrupt, { runId, at: { nodeId }, resumeValue }, caller);
const statusOf = async (runId: string): Promise<RunStatus> => (await rig.read(runId)).status;
const payloadsOf = (events: readonly RunEvent[] | undefined, type: string): JsonObject[] =>
  (events ?? []).filter((event) => event.type === type).map(({ payload }) => payload as JsonObject);

it.each(FIXTURES)('$id is read back as it was registered', async ({ id, ...rest }: Fixture) => {
  const { definition } = await rig.call(engine.getWorkflow, { workflowId: id });
  expect(definition).toEqual({ id, ...rest });
});

describe('runs that end by themselves', () => {
  it('noop completes, whatever else it is given', async () => {
    const run = await ended('conformance-noop', { inputs: { delaySeconds: 30, note: 'free text' } });
    expect(run.status).toBe('completed');
    expect(run.events?.length).toBeGreaterThanOrEqual(2);
  });

  it('identity gives its payload back', async () => {
    const payload = { text: 'ä', list: [1, { two: null }], empty: {} };
    expect((await ended('conformance-identity', { inputs: { payload } })).snapshot?.variables['payload']).toEqual(payload);
    await expect(rig.create('conformance-identity', {})).rejects.toMatchObject({ code: 'validation_error' });
  });

  it('delay sleeps as long as it is told', async () => {
    const run = await ended('conformance-delay', { inputs: { delayMs: 300 } });
    const [first, last] = [run.events?.[0], run.events?.at(-1)];
    expect(run.status).toBe('completed');
    expect(Date.parse(last?.timestamp ?? '') - Date.parse(first?.timestamp ?? '')).toBeGreaterThanOrEqual(300);
  });

  it('failure fails, and the node says why', async () => {
    const run = await ended('conformance-failure');
    expect(run.snapshot).toMatchObject({ status: 'failed', error: { code: expect.any(String), message: expect.any(String) } });
    expect(payloadsOf(run.events, 'node.failed')).toMatchObject([{ nodeId: 'fail', error: { code: expect.any(String) } }]);
  });

  it('multi-node runs a, b, c in order', async () => {
    const run = await ended('conformance-multi-node');
    expect(shape(run.events).filter((text) => text.startsWith('node.'))).toEqual(
      ['a', 'b', 'c'].flatMap((id) => [`node.started:${id}`, `node.completed:${id}`]),
    );
  });

  it('idempotent wants its nonce', async () => {
    expect((await ended('conformance-idempotent', { inputs: { nonce: 'n' } })).status).toBe('completed');
    await expect(rig.create('conformance-idempotent', {})).rejects.toMatchObject({ code: 'validation_error' });
  });

  it('cap-breach executes three of its six nodes when told so', async () => {
    const run = await ended('conformance-cap-breach', { configurable: { recursionLimit: 3 } });
    expect(run.snapshot).toMatchObject({ status: 'failed', error: { code: 'recursion_limit_exceeded' } });
    expect(payloadsOf(run.events, 'cap.breached')).toMatchObject([{ kind: 'node-executions', limit: 3 }]);
    expect(shape(run.events).filter((text) => text.startsWith('node.started')).length).toBeLessThanOrEqual(3);
  });

  it('run-duration-breach is over when its time is', async () => {
    const run = await ended('conformance-run-duration-breach', { inputs: { delayMs: 30_000 }, configurable: { runTimeoutMs: 300 } });
    expect(run.snapshot).toMatchObject({ status: 'failed', error: { code: 'run_timeout' } });
    expect(payloadsOf(run.events, 'cap.breached')).toMatchObject([{ kind: 'run-duration' }]);
  });

  it('capability-missing names what it misses and executes nothing', async () => {
    const run = await ended('conformance-capability-missing');
    expect(run.snapshot?.error).toMatchObject({
      code: 'capability_not_provided',
      message: expect.stringContaining('conformance.never-provided'),
    });
    expect(shape(run.events)).not.toContain('node.completed:n1');
  });

  it('channel-ttl keeps what has not expired', async () => {
    expect((await ended('conformance-channel-ttl')).snapshot?.channels).toEqual({ events: ['d'] });
  });

  it('append-ordering keeps the order of writes', async () => {
    const run = await ended('conformance-append-ordering');
    expect(payloadsOf(run.events, 'channel.written').map(({ value }) => value)).toEqual(['first', 'second', 'third']);
    expect(run.snapshot?.channels).toEqual({ events: ['first', 'second', 'third'] });
  });

  it('configurable-schema takes the options it names and no others', async () => {
    expect((await ended('conformance-configurable-schema', { configurable: { recursionLimit: 5, tags: ['x'] } })).status).toBe('completed');
    const refused: JsonObject[] = [{ surprise: true }, { recursionLimit: 0 }, { tags: 'x' }];
    for (const configurable of refused)
      await expect(rig.create('conformance-configurable-schema', { configurable })).rejects.toMatchObject({
        code: 'validation_error',
      });
  });

  it('mcp-tool-roundtrip calls echo at the server called conformance, and the log names the tool', async () => {
    const run = await ended('conformance-mcp-tool-roundtrip', { inputs: { text: 'roundtrip-probe' } });
    expect(run.status).toBe('completed');
    expect(called).toEqual([{ serverId: 'conformance', toolName: 'echo', arguments: { text: 'roundtrip-probe' } }]);
    expect(payloadsOf(run.events, 'agent.toolCalled')).toMatchObject([{ toolName: 'echo', transport: 'mcp' }]);
    expect(JSON.stringify(run.events?.filter(({ type }) => type !== 'run.started'))).not.toContain('roundtrip-probe');
  });

  it('a model node calls the tool that it names, too, and is refused where it names none', async () => {
    const nodes = [{ id: 'ai', typeId: 'core.ai.callPrompt', config: { mcp: { tool: 'shout', arguments: { text: 'x' } } } }];
    await rig.register('with-tool', nodes);
    expect((await rig.ended(await rig.create('with-tool'))).status).toBe('completed');
    expect(called.at(-1)).toEqual({ serverId: 'conformance', toolName: 'shout', arguments: { text: 'x' } });
    await expect(rig.register('without', [{ id: 'ai', typeId: 'core.ai.callPrompt', config: { promptId: 'p' } }])).rejects.toMatchObject({
      code: 'validation_error',
    });
  });
});

describe('runs that wait', () => {
  it('cancellable runs until it is cancelled', async () => {
    const runId = await start('conformance-cancellable', { inputs: { delayMs: 10_000 } });
    await until(async () => shape((await rig.read(runId)).events).includes('node.started:wait'));
    expect(await statusOf(runId)).toBe('running');
    await rig.call(engine.cancelRun, { runId });
    expect((await rig.ended(runId)).status).toBe('cancelled');
  });

  it.each([
    ['conformance-approval', { action: 'accept' }],
    ['conformance-approval-edit-accept', { action: 'edit-accept', editedArtifactData: { text: 'better' } }],
    ['conformance-interrupt-auth-required', { action: 'accept' }],
  ])('%s waits at its gate until it is approved', async (id, resumeValue) => {
    const { runId, snapshot, status } = await waiting(id);
    expect([status, snapshot?.currentNodeId]).toEqual(['waiting-approval', 'gate']);
    await resolve(runId, 'gate', resumeValue);
    expect((await rig.ended(runId)).status).toBe('completed');
  });

  it('approval refuses an action it does not offer, and edit-accept one without the edit', async () => {
    const { runId } = await waiting('conformance-approval');
    await expect(resolve(runId, 'gate', { action: 'refine', refineFeedback: { scope: 'whole' } })).rejects.toMatchObject({
      code: 'validation_error',
    });
    const edit = await waiting('conformance-approval-edit-accept');
    await expect(resolve(edit.runId, 'gate', { action: 'edit-accept' })).rejects.toMatchObject({ code: 'validation_error' });
  });

  it('approval-refine takes feedback', async () => {
    const { runId } = await waiting('conformance-approval-refine');
    await expect(resolve(runId, 'gate', { action: 'refine' })).rejects.toMatchObject({ code: 'validation_error' });
    await resolve(runId, 'gate', { action: 'refine', refineFeedback: { scope: 'whole', text: 'shorter' } });
    const { events } = await rig.read(runId);
    expect(payloadsOf(events, 'approval.received')).toMatchObject([
      { action: 'refine', refineFeedback: { scope: 'whole', text: 'shorter' } },
    ]);
  });

  it('interrupt-auth-required refuses a key without approvals:respond, and its token', async () => {
    const { runId, snapshot } = await waiting('conformance-interrupt-auth-required');
    await expect(resolve(runId, 'gate', { action: 'accept' }, callerOf({ scopes: ['runs:read'] }))).rejects.toMatchObject({
      code: 'forbidden',
    });
    const token = snapshot?.interrupt?.interruptToken ?? '';
    await expect(rig.call(engine.resolveToken, { token, resumeValue: { action: 'accept' } })).rejects.toMatchObject({ code: 'forbidden' });
    expect(await statusOf(runId)).toBe('waiting-approval');
  });

  it('clarification waits for its answer', async () => {
    const { runId, snapshot, status } = await waiting('conformance-clarification');
    expect([status, snapshot?.currentNodeId]).toEqual(['waiting-input', 'ask']);
    await resolve(runId, 'ask', { answers: { q1: 'blue' } });
    expect((await rig.ended(runId)).status).toBe('completed');
  });

  it('interrupt-external-event takes its correlation by token, and no other', async () => {
    const { runId, snapshot, status } = await waiting('conformance-interrupt-external-event');
    expect([status, snapshot?.currentNodeId]).toEqual(['waiting-external', 'wait-for-external']);
    const token = snapshot?.interrupt?.interruptToken ?? '';
    await expect(
      rig.call(engine.resolveToken, { token, resumeValue: { orderId: 'fixture-order-2', status: 'completed' } }),
    ).rejects.toMatchObject({ code: 'interrupt_mismatch' });
    expect(await statusOf(runId)).toBe('waiting-external');
    await rig.call(engine.resolveToken, { token, resumeValue: { orderId: 'fixture-order-1', status: 'completed' } });
    expect((await rig.ended(runId)).status).toBe('completed');
  });

  it('interrupt-quorum counts three voters that one key names, and two refusals', async () => {
    const { runId } = await waiting('conformance-interrupt-quorum');
    for (const voter of ['approver-1', 'approver-2']) {
      await resolve(runId, 'gate', { action: 'accept', voter });
      expect(await statusOf(runId)).toBe('waiting-approval');
    }
    await resolve(runId, 'gate', { action: 'accept', voter: 'approver-3' });
    expect((await rig.ended(runId)).status).toBe('completed');
    const second = await waiting('conformance-interrupt-quorum');
    for (const voter of ['approver-1', 'approver-2']) await resolve(second.runId, 'gate', { action: 'reject', voter });
    expect((await rig.ended(second.runId)).status).toBe('failed');
  });

  it('interrupt-parent-child-cancel takes its child along', async () => {
    const runId = await start('conformance-interrupt-parent-child-cancel');
    const childOf = async () => (await rig.read(runId)).snapshot?.childRuns?.[0]?.runId ?? '';
    await until(childOf);
    const child = await childOf();
    await until(async () => (await statusOf(child)) === 'waiting-approval');
    expect((await rig.read(child)).snapshot).toMatchObject({
      workflowId: 'conformance-interrupt-parent-child-cancel-child',
      currentNodeId: 'child-gate',
      parentRunId: runId,
      parentNodeId: 'spawn-child',
    });
    proven.add('conformance-interrupt-parent-child-cancel-child');
    await rig.call(engine.cancelRun, { runId });
    expect((await rig.ended(child)).status).toBe('cancelled');
    await expect(resolve(child, 'child-gate', { action: 'accept' })).rejects.toMatchObject({ code: 'interrupt_gone' });
  });

  it('subworkflow-parent takes what its child has', async () => {
    const run = await ended('conformance-subworkflow-parent');
    expect(run.snapshot).toMatchObject({ status: 'completed', variables: { childOutcome: 'child-completed' } });
    const call = payloadsOf(run.events, 'node.completed').find(({ nodeId }) => nodeId === 'subwf-call');
    const outputs = call?.['outputs'] as { childRunId: string };
    expect(outputs).toMatchObject({ childRunId: expect.any(String), childStatus: 'completed' });
    expect((await rig.read(outputs.childRunId)).snapshot).toMatchObject({
      workflowId: 'conformance-subworkflow-child',
      status: 'completed',
      parentRunId: run.runId,
      parentNodeId: 'subwf-call',
    });
    proven.add('conformance-subworkflow-child');
  });

  it('replay-side-effect fails closed in a replay, and a replay of a whole run performs nothing', async () => {
    const source = await start('conformance-replay-side-effect', { inputs: { delayMs: 5_000 } });
    await until(async () => shape((await rig.read(source)).events).includes('node.started:wait'));
    await rig.call(engine.cancelRun, { runId: source });
    const fork = async (runId: string) => rig.ended((await rig.call(engine.forkRun, { runId, mode: 'replay', fromSeq: 0 })).runId);
    const cut = await fork(source);
    expect(shape(cut.events)).not.toContain('node.completed:effect');
    expect(payloadsOf(cut.events, 'node.failed')).toMatchObject([{ nodeId: 'effect', error: { code: 'replay_source_missing' } }]);
    const whole = await ended('conformance-replay-side-effect', { inputs: { delayMs: 1 } });
    expect(shape((await fork(whole.runId)).events)).toEqual(shape(whole.events));
  });
});

it('no fixture is left that nobody has run', () => {
  expect(FIXTURES.map(({ id }) => id).filter((id) => !proven.has(id))).toEqual([]);
});
