import { describe, expect, it } from '@jest/globals';
import { isWopError, type Json, type JsonObject, type ToolReply, type WorkflowDefinition } from '@isthmus/protocol';
import { definitionOf } from '../core/given.suite.js';
import { BEGAN, enter, type Entering, FakeTool } from './enter.suite.js';
import { checkNodes, exposuresOf, NODES, nodeType } from './index.js';
import type { Result } from './node-type.js';

const completed = (outputs: JsonObject, rest: object = {}) => ({ is: 'completed', outputs, ...rest });
const failed = (code: string) => expect.objectContaining({ is: 'failed', error: expect.objectContaining({ code }) });
const invalid = (path: string) => ({ is: 'invalid', path });
const DAY = 24 * 3_600_000;
const form = {
  message: 'Who?',
  requestedSchema: {
    type: 'object',
    properties: { name: { type: 'string', title: 'Your name' }, age: { type: 'integer' } },
    required: ['name'],
  },
};

/** Type, how it is entered, what it comes to. */
const TABLE: readonly (readonly [string, Entering, unknown])[] = [
  ['core.noop', {}, completed({})],
  ['core.noop', { config: { anything: 1 }, inputs: { x: 1 } }, completed({})],

  ['core.identity', { inputs: { x: 1, y: null } }, completed({ x: 1, y: null }, { untrusted: false })],
  ['core.identity', { inputs: { x: 1 }, untrusted: true }, completed({ x: 1 }, { untrusted: true })],

  ['core.fail', {}, { is: 'failed', error: { code: 'node_failed', message: 'This node always fails.' } }],
  ['core.fail', { config: { code: 'c', message: 'm' } }, { is: 'failed', error: { code: 'c', message: 'm' } }],
  ['core.fail', { config: { code: '' } }, invalid('code')],

  // Counted from when the node began, so that a takeover does not start it again.
  ['core.delay', { config: { delayMs: 100 } }, { is: 'asleep', until: BEGAN + 100 }],
  ['core.delay', { config: { delayMs: 100 }, now: BEGAN + 99 }, { is: 'asleep', until: BEGAN + 100 }],
  ['core.delay', { config: { delayMs: 100 }, now: BEGAN + 100 }, completed({})],
  ['core.delay', { config: { ms: 100 }, now: BEGAN + 5_000 }, completed({})],
  ['core.delay', { config: { durationMs: 10.2 } }, { is: 'asleep', until: BEGAN + 11 }],
  ['core.delay', { config: { delayMs: 100 }, inputs: { delayMs: 7 } }, { is: 'asleep', until: BEGAN + 7 }],
  ['core.delay', { inputs: { ms: 7 } }, { is: 'asleep', until: BEGAN + 7 }],
  ['core.delay', { config: { delayMs: 0 } }, completed({})],
  ['core.delay', { config: { delayMs: 30 * DAY } }, { is: 'asleep', until: BEGAN + 30 * DAY }],
  ['core.delay', { config: { delayMs: 30 * DAY + 1 } }, failed('validation_error')],
  ['core.delay', { config: { delayMs: -1 } }, failed('validation_error')],
  ['core.delay', {}, failed('validation_error')],
  ['core.delay', { config: { delayMs: '100' } }, invalid('delayMs')],

  [
    'core.setVariable',
    { config: { variableName: 'v', value: 1 } },
    completed({ value: 1 }, { untrusted: false, sets: [{ name: 'v', value: 1 }] }),
  ],
  [
    'core.setVariable',
    { config: { name: 'v', value: 1 }, inputs: { value: 2 } },
    completed({ value: 2 }, { untrusted: false, sets: [{ name: 'v', value: 2 }] }),
  ],
  [
    'core.setVariable',
    { config: { name: 'other', variableName: 'v' }, inputs: { value: 0 }, untrusted: true },
    completed({ value: 0 }, { untrusted: true, sets: [{ name: 'v', value: 0 }] }),
  ],
  [
    'core.setVariable',
    { config: { name: 'v', value: 'x' }, inputs: { value: null } },
    completed({ value: null }, { untrusted: false, sets: [{ name: 'v', value: null }] }),
  ],
  [
    'core.setVariable',
    { config: { name: 'v', value: null } },
    completed({ value: null }, { untrusted: false, sets: [{ name: 'v', value: null }] }),
  ],
  ['core.setVariable', { config: { name: 'v' } }, failed('variable_missing')],
  ['core.setVariable', { config: { value: 1 } }, invalid('variableName')],

  [
    'core.approvalGate',
    {},
    {
      is: 'suspended',
      requests: [
        {
          request: {
            kind: 'approval',
            key: 'n',
            data: {
              artifactId: 'n',
              artifactType: 'node.inputs',
              title: 'The node',
              actions: ['accept', 'reject'],
              requiredApprovals: 1,
              rejectionPolicy: 'single-veto',
            },
          },
        },
      ],
    },
  ],
  [
    'core.approvalGate',
    {
      config: {
        title: 'Publish?',
        description: 'd',
        actions: ['accept', 'ask'],
        requiredApprovals: 2,
        rejectionPolicy: 'majority',
        approversList: ['ada'],
        artifactId: 'x',
        artifactType: 'y',
      },
      inputs: { draft: 'text' },
      untrusted: true,
    },
    {
      is: 'suspended',
      requests: [
        {
          request: {
            kind: 'approval',
            key: 'n',
            data: {
              artifactId: 'x',
              artifactType: 'y',
              title: 'Publish?',
              description: 'd',
              actions: ['accept', 'ask'],
              requiredApprovals: 2,
              rejectionPolicy: 'majority',
              approversList: ['ada'],
            },
          },
          artifact: { draft: 'text' },
          untrusted: true,
        },
      ],
    },
  ],
  ['core.approvalGate', { answers: { n: { action: 'accept', decidedBy: 'ada' } } }, completed({ action: 'accept', decidedBy: 'ada' })],
  [
    'core.approvalGate',
    { answers: { n: { action: 'reject', comment: 'too long' } } },
    { is: 'failed', error: { code: 'approval_rejected', message: 'The approval "n" was rejected: too long', retryable: false } },
  ],
  ['core.approvalGate', { answers: { n: { action: 'reject' } } }, failed('approval_rejected')],
  ['core.approvalGate', { answers: { n: { action: 'reject' } }, isRouted: true }, completed({ action: 'reject' })],
  ['core.approvalGate', { config: { requiredApprovals: 0 } }, invalid('requiredApprovals')],
  ['core.approvalGate', { config: { actions: [] } }, invalid('actions')],
  ['core.approvalGate', { config: { actions: ['maybe'] } }, invalid('actions.0')],

  [
    'core.clarificationGate',
    { config: { questions: [{ id: 'q', question: '?' }], contextType: 'c' } },
    {
      is: 'suspended',
      requests: [{ request: { kind: 'clarification', key: 'n', data: { questions: [{ id: 'q', question: '?' }], contextType: 'c' } } }],
    },
  ],
  [
    'core.clarificationGate',
    { config: { questions: [{ id: 'q', question: '?' }] }, answers: { n: { action: 'accept', answers: { q: 1 } } } },
    completed({ q: 1, action: 'accept', answers: { q: 1 } }),
  ],
  // An answer never stands in the place of how it was given.
  [
    'core.clarificationGate',
    { config: { questions: [{ id: 'action', question: '?' }] }, answers: { n: { action: 'accept', answers: { action: 'decline' } } } },
    completed({ action: 'accept', answers: { action: 'decline' } }),
  ],
  [
    'core.clarificationGate',
    { config: { questions: [{ id: 'q', question: '?' }] }, answers: { n: { action: 'decline', answers: {} } } },
    failed('clarification_declined'),
  ],
  [
    'core.clarificationGate',
    { config: { questions: [{ id: 'q', question: '?' }] }, answers: { n: { action: 'cancel', answers: {} } }, isRouted: true },
    completed({ action: 'cancel', answers: {} }),
  ],
  ['core.clarificationGate', { config: { questions: [] } }, invalid('questions')],
  ['core.clarificationGate', {}, invalid('questions')],

  [
    'core.openwop.mcp.handle-elicitation',
    { config: form, untrusted: true },
    {
      is: 'suspended',
      requests: [
        {
          request: {
            kind: 'clarification',
            key: 'n',
            data: {
              contextType: 'mcp-elicitation',
              message: 'Who?',
              questions: [
                { id: 'name', question: 'Your name', schema: { type: 'string', title: 'Your name' }, required: true },
                { id: 'age', question: 'Who?', schema: { type: 'integer' }, required: false },
              ],
            },
            metadata: { mcp: form },
          },
          untrusted: true,
        },
      ],
    },
  ],
  [
    'core.openwop.mcp.handle-elicitation',
    { inputs: { request: form }, answers: { n: { action: 'accept', answers: { name: 'Ada' } } } },
    completed({ action: 'accept', content: { name: 'Ada' } }),
  ],
  [
    'core.openwop.mcp.handle-elicitation',
    { config: form, answers: { n: { action: 'accept' } } },
    completed({ action: 'accept', content: {} }),
  ],
  [
    'core.openwop.mcp.handle-elicitation',
    { config: form, answers: { n: { action: 'decline', answers: {} } } },
    failed('clarification_declined'),
  ],
  [
    'core.openwop.mcp.handle-elicitation',
    { config: form, answers: { n: { action: 'decline', answers: {} } }, isRouted: true },
    completed({ action: 'decline' }),
  ],
  ['core.openwop.mcp.handle-elicitation', {}, failed('validation_error')],
  ['core.openwop.mcp.handle-elicitation', { inputs: { request: { message: 5 } } }, failed('validation_error')],

  ...['core.start', 'core.end', 'core.merge', 'core.parallel'].map(
    (typeId) => [typeId, { inputs: { x: 1 }, untrusted: true }, completed({ x: 1 }, { untrusted: true })] as const,
  ),

  [
    'core.getVariable',
    { config: { variableName: 'v' }, variables: { v: null }, variableTaint: { untrusted: true, secret: true } },
    completed({ value: null }, { untrusted: true, secret: true }),
  ],
  ['core.getVariable', { config: { name: 'v' }, variables: { v: 1 } }, completed({ value: 1 }, { untrusted: false, secret: false })],
  ['core.getVariable', { config: { name: 'v' } }, failed('variable_missing')],
  ['core.getVariable', {}, invalid('variableName')],

  [
    'core.conditional',
    { config: { expression: 'inputs.value > 1' }, inputs: { value: 2 }, untrusted: true },
    completed({ branch: 'then', matched: true, value: 2 }, { untrusted: true }),
  ],
  [
    'core.conditional',
    { config: { predicate: { type: 'expression', expression: 'inputs.value > 1' } }, inputs: { value: 1 } },
    completed({ branch: 'else', matched: false, value: 1 }, { untrusted: false }),
  ],
  ['core.conditional', { config: { expression: 'inputs.other' } }, failed('expression_failed')],
  ['core.conditional', { config: { expression: '1 +' } }, invalid('predicate')],

  [
    'core.channelWrite',
    { config: { channelName: 'c' }, inputs: { value: 1 }, untrusted: true },
    completed({}, { untrusted: true, writes: [{ channel: 'c', value: 1, reducer: 'append' }] }),
  ],
  [
    'core.channelWrite',
    { config: { channelName: 'c', reducer: 'append', ttlMs: 5, value: 1 }, channels: { c: { reducer: 'counter' } } },
    completed({}, { untrusted: false, writes: [{ channel: 'c', value: 1, reducer: 'counter' }] }),
  ],
  [
    'core.channelWrite',
    {
      config: { channelName: 'c', value: 1 },
      channels: { c: { reducer: 'append', access: { writers: ['other', 'core.ai.*'] } } },
    },
    failed('channel_access_denied'),
  ],
  [
    'core.channelWrite',
    { config: { channelName: 'c', value: 1 }, channels: { c: { reducer: 'append', access: { writers: ['core.*'] } } } },
    completed({}, { untrusted: false, writes: [{ channel: 'c', value: 1, reducer: 'append' }] }),
  ],
  ['core.channelWrite', { config: { channelName: 'c' } }, failed('variable_missing')],
  ['core.channelWrite', { config: { channelName: 'c', reducer: 'best' } }, invalid('reducer')],

  [
    'core.interrupt',
    { config: { kind: 'external-event', data: { eventType: 'paid', correlation: { order: 1 } }, timeoutMs: 5 } },
    {
      is: 'suspended',
      requests: [{ request: { key: 'n', kind: 'external-event', data: { eventType: 'paid', correlation: { order: 1 } }, timeoutMs: 5 } }],
    },
  ],
  [
    'core.interrupt',
    { config: { kind: 'vendor.acme.signature', key: 'k', data: { page: 1 } } },
    {
      is: 'suspended',
      requests: [{ request: { key: 'k', kind: 'custom', data: { customKind: 'vendor.acme.signature', payload: { page: 1 } } } }],
    },
  ],
  [
    'core.interrupt',
    { config: { kind: 'vendor.acme.signature' }, answers: { n: { signed: true } } },
    completed({ value: { signed: true } }),
  ],
  ['core.interrupt', { config: { kind: 'vendor.x.y' }, answers: { n: { action: 'timeout' } } }, failed('interrupt_expired')],
  ['core.interrupt', {}, invalid('kind')],

  [
    'core.openwop.governance.approvalGate',
    { config: { requiredRole: 'lead', requiredScope: 'x:y', timeoutSec: 1.5 } },
    {
      is: 'suspended',
      requests: [
        {
          request: {
            kind: 'approval',
            key: 'n',
            data: {
              artifactId: 'n',
              artifactType: 'node.inputs',
              title: 'The node',
              actions: ['accept', 'reject'],
              requiredApprovals: 1,
              rejectionPolicy: 'single-veto',
              gateId: 'n',
              approverRoleRefs: ['lead', 'scope:x:y'],
              overrideBypassesQuorum: false,
            },
            timeoutMs: 1_500,
          },
        },
      ],
    },
  ],
  [
    'core.openwop.governance.approvalGate',
    { config: { requiredRole: 'lead' }, answers: { n: { action: 'reject' } }, isRouted: true },
    completed({ action: 'reject', decision: 'rejected' }),
  ],
  [
    'core.openwop.governance.approvalGate',
    { config: { requiredRole: 'lead' }, answers: { n: { action: 'reject' } } },
    failed('approval_rejected'),
  ],
  ['core.openwop.governance.approvalGate', {}, invalid('requiredRole')],

  ['conformance.requiresMissing', {}, completed({})],
  ['core.conformance.hold', { config: { delayMs: 100 } }, { is: 'asleep', until: BEGAN + 100 }],
  ['core.conformance.side-effect', {}, completed({ performed: true })],
  ['core.ai.callPrompt', { config: { prompt: 'x' } }, invalid('mcp')],
  ['core.conformance.mcp-invoke', { config: { mcp: {} } }, invalid('mcp.tool')],

  [
    'core.subWorkflow',
    { config: { workflowId: 'w' }, child: { status: 'running', variables: {} } },
    { is: 'awaiting', childRunId: 'child' },
  ],
  [
    'core.subWorkflow',
    { config: { workflowId: 'w', waitForCompletion: false }, child: { status: 'running', variables: {} } },
    completed({ childRunId: 'child', childStatus: 'running' }),
  ],
  [
    'core.subWorkflow',
    {
      config: { workflowId: 'w', outputMapping: { mine: 'theirs', none: 'other' } },
      child: { status: 'completed', variables: { theirs: 1 } },
    },
    completed({ childRunId: 'child', childStatus: 'completed' }, { sets: [{ name: 'mine', value: 1 }], untrusted: false }),
  ],
  ['core.subWorkflow', { config: { workflowId: 'w' }, child: { status: 'failed', variables: {} } }, failed('child_failed')],
  [
    'core.subWorkflow',
    { config: { workflowId: 'w', onChildFailure: 'absorb' }, child: { status: 'failed', variables: {} } },
    completed({ childRunId: 'child', childStatus: 'failed' }, { sets: [], untrusted: false }),
  ],

  ['core.openwop.mcp.expose-tool', { config: { name: 'research' } }, completed({ handle: 'research', kind: 'tool' })],
  ['core.openwop.mcp.expose-tool', { config: { name: 'not a name' } }, invalid('name')],
];

describe('a node', () => {
  it.each(TABLE)('%s entered with %j', async (typeId, entering, result) => {
    expect(await enter(typeId, entering)).toEqual(result);
  });

  it('of every type but those that call a tool is told here', () => {
    const told = new Set(TABLE.map(([typeId]) => typeId));
    expect(Object.keys(NODES).filter((typeId) => !told.has(typeId) && NODES[typeId]?.runs === 'at once')).toEqual([]);
  });

  it('that asks with an empty form still asks for a yes', async () => {
    const asked = await enter('core.openwop.mcp.handle-elicitation', { config: { message: 'Sure?', requestedSchema: {} } });
    expect(asked).toMatchObject({
      requests: [{ request: { data: { questions: [{ id: 'confirm', question: 'Sure?', required: false }] } } }],
    });
  });
});

const reply: ToolReply = {
  is: 'complete',
  result: { content: [{ type: 'text', text: 'done' }] },
  isError: false,
  negotiatedVersion: '2026-07-28',
};
const asks: ToolReply = {
  is: 'input_required',
  requestState: 's',
  inputRequests: { who: { method: 'elicitation/create', params: form } },
  negotiatedVersion: '2026-07-28',
};

const CALL = {
  answer: { action: 'accept', answers: { name: 'Ada' } },
  tool: () => new FakeTool((round) => (round === 0 ? asks : reply)),
};

/** One way through every type: what it is entered with, and how people answer what it asks. */
const LIVES: Readonly<Record<string, { readonly entering: Entering; readonly answer?: Json; readonly tool?: () => FakeTool }>> = {
  'core.noop': { entering: {} },
  'core.identity': { entering: { inputs: { x: 1 } } },
  'core.delay': { entering: { config: { delayMs: 100 }, now: BEGAN + 100 } },
  'core.fail': { entering: {} },
  'core.setVariable': { entering: { config: { name: 'v', value: 1 } } },
  'core.approvalGate': { entering: { inputs: { draft: 1 } }, answer: { action: 'accept' } },
  'core.clarificationGate': {
    entering: { config: { questions: [{ id: 'q', question: '?' }] } },
    answer: { action: 'accept', answers: { q: 1 } },
  },
  'core.openwop.mcp.handle-elicitation': { entering: { config: form }, answer: { action: 'accept', answers: { name: 'Ada' } } },
  'core.openwop.mcp.expose-tool': { entering: { config: { name: 't' } } },
  'core.openwop.mcp.invoke-tool': { entering: { config: { serverId: 's', toolName: 't' } }, ...CALL },
  'core.conformance.mcp-invoke': { entering: { config: { mcp: { tool: 't' } } }, ...CALL },
  'core.ai.callPrompt': { entering: { config: { mcp: { tool: 't' } } }, ...CALL },
  'core.start': { entering: { inputs: { x: 1 } } },
  'core.end': { entering: { inputs: { x: 1 } } },
  'core.merge': { entering: {} },
  'core.parallel': { entering: {} },
  'core.getVariable': { entering: { config: { name: 'v' }, variables: { v: 1 } } },
  'core.conditional': { entering: { config: { expression: 'true' } } },
  'core.channelWrite': { entering: { config: { channelName: 'c', value: 1 } } },
  'core.interrupt': { entering: { config: { kind: 'vendor.x.y' } }, answer: { x: 1 } },
  'core.openwop.governance.approvalGate': { entering: { config: { requiredRole: 'r' } }, answer: { action: 'accept' } },
  'core.subWorkflow': { entering: { config: { workflowId: 'w' }, child: { status: 'completed', variables: {} } } },
  'conformance.requiresMissing': { entering: {} },
  'core.conformance.hold': { entering: { config: { delayMs: 100 }, now: BEGAN + 100 } },
  'core.conformance.side-effect': { entering: {} },
};

describe('a node that is entered again after everything was recorded', () => {
  it.each(Object.keys(NODES))('%s comes to the same result, with nothing asked and nothing sent again', async (typeId) => {
    const life = LIVES[typeId];
    if (!life) throw new Error(`tell how ${typeId} lives`);
    const tool = life.tool?.();
    const answers: Record<string, Json> = {};
    const once = async (): Promise<Result> => (await enter(typeId, { ...life.entering, answers, ...(tool && { tool }) })) as Result;

    const asked = await once();
    expect(await once()).toEqual(asked);
    if (asked.is === 'suspended') for (const { request } of asked.requests) answers[request.key] = life.answer as Json;
    const ended = await once();
    expect(ended.is).not.toBe('suspended');
    const sent = tool?.sent.length;
    expect(await once()).toEqual(ended);
    expect(tool?.sent.length).toBe(sent);
  });
});

describe('a definition', () => {
  const refusal = (definition: WorkflowDefinition) => {
    try {
      checkNodes(definition);
    } catch (error) {
      if (isWopError(error)) return { code: error.code, details: error.details };
      throw error;
    }
    return undefined;
  };

  it.each(['core.nothing', 'constructor', 'toString', 'hasOwnProperty'])(
    'with a node type that this host does not have is refused: %s',
    (typeId) => {
      expect(nodeType(typeId)).toBeUndefined();
      expect(refusal(definitionOf(['a', { id: 'b', typeId }]))).toMatchObject({
        code: 'capability_required',
        details: { requiredCapability: typeId, nodeId: 'b' },
      });
    },
  );

  it('with a config that its type refuses is refused, with the place', () => {
    const definition = definitionOf(['a', { id: 'b', typeId: 'core.approvalGate', config: { requiredApprovals: 0 } }]);
    expect(refusal(definition)).toMatchObject({
      code: 'validation_error',
      details: { nodeId: 'b', issues: [{ path: 'nodes.1.config.requiredApprovals' }] },
    });
  });

  it('with nodes of every type passes', () => {
    const nodes = Object.entries(LIVES).map(([typeId, { entering }], index) => ({
      id: `n${index}`,
      typeId,
      config: entering.config ?? {},
    }));
    expect(refusal(definitionOf(nodes))).toBeUndefined();
  });

  it('publishes what its expose nodes say, and nothing else', () => {
    const config = { name: 'research', description: 'd' };
    expect(exposuresOf(definitionOf(['a', { id: 'x', typeId: 'core.openwop.mcp.expose-tool', config }]))).toEqual([
      { kind: 'tool', name: 'research', workflowId: 'w', nodeId: 'x', manifest: config },
    ]);
  });
});
