// The workflows that conformance suites run: seeded for every tenant of `npm start -- --conformance`, listed in discovery.
// Ids, node ids, node types and numbers are the suites'; outcomes are proven by apps/engine/src/fixtures.int.spec.ts.

/** A document with every member its schema has a default for, so that what is read back is what was registered. */
function fixture(id, { description, nodes, edges = chain(nodes), variables = [], settings = {}, ...rest }) {
  return {
    id,
    name: `Conformance: ${id.replace(/^conformance-/, '').replaceAll('-', ' ')}`,
    version: '1.0',
    description,
    nodes: nodes.map((node, index) => ({ name: node.id, position: { x: index * 200, y: 0 }, config: {}, inputs: {}, ...node })),
    edges,
    triggers: [{ id: 'manual', type: 'manual', enabled: true }],
    variables,
    metadata: { tags: ['conformance'] },
    settings,
    ...rest,
  };
}

/** One after the other. */
const chain = (nodes) =>
  nodes.slice(1).map((node, index) => ({ id: `${nodes[index].id}-${node.id}`, sourceNodeId: nodes[index].id, targetNodeId: node.id }));

const noop = (id) => ({ id, typeId: 'core.noop' });
const fromVariable = (name) => ({ [name]: { type: 'variable', variableName: name } });
const sleep = (typeId = 'core.delay') => ({ id: 'wait', typeId, inputs: fromVariable('delayMs') });
const delayMs = (defaultValue, range) => ({
  name: 'delayMs',
  type: 'number',
  description: `How long to sleep, ${range} ms.`,
  required: true,
  defaultValue,
});
const gate = (config, id = 'gate') => ({ id, typeId: 'core.approvalGate', config });
const write = (value) => ({
  id: `write-${value}`,
  typeId: 'core.channelWrite',
  config: { channelName: 'events', reducer: 'append', ttlMs: 200, value },
});

const FIXTURES = [
  fixture('conformance-noop', { description: 'One node that completes.', nodes: [noop('noop')], settings: { timeout: 10_000 } }),
  fixture('conformance-identity', {
    description: 'Inputs come back as they went in.',
    nodes: [{ id: 'echo', typeId: 'core.identity', inputs: fromVariable('payload') }],
    variables: [{ name: 'payload', type: 'object', description: 'Anything.', required: true }],
    settings: { timeout: 10_000 },
  }),
  fixture('conformance-delay', {
    description: 'Completes after a delay.',
    nodes: [sleep()],
    variables: [delayMs(1_000, '0 to 30000')],
    settings: { timeout: 60_000 },
  }),
  fixture('conformance-failure', {
    description: 'Always fails.',
    nodes: [{ id: 'fail', typeId: 'core.fail' }],
    settings: { maxRetries: 0 },
  }),
  fixture('conformance-multi-node', {
    description: 'Three nodes in order.',
    nodes: ['a', 'b', 'c'].map(noop),
    settings: { timeout: 30_000 },
  }),
  fixture('conformance-idempotent', {
    description: 'Completes; the nonce tells requests apart and does nothing.',
    nodes: [noop('noop')],
    variables: [{ name: 'nonce', type: 'string', description: 'Without effect.', required: true }],
  }),
  fixture('conformance-cancellable', {
    description: 'Runs long enough to be cancelled.',
    nodes: [sleep()],
    variables: [delayMs(30_000, '1 to 60000')],
    settings: { timeout: 120_000 },
  }),
  fixture('conformance-cap-breach', {
    description: 'Six nodes, more than a small recursionLimit allows.',
    nodes: ['n1', 'n2', 'n3', 'n4', 'n5', 'n6'].map(noop),
    settings: { maxRetries: 0 },
  }),
  fixture('conformance-run-duration-breach', {
    description: 'Sleeps longer than a small runTimeoutMs allows.',
    nodes: [sleep()],
    variables: [delayMs(30_000, '1 to 60000')],
    settings: { timeout: 60_000 },
  }),
  fixture('conformance-capability-missing', {
    description: 'Needs a capability that no host has.',
    nodes: [{ id: 'n1', typeId: 'conformance.requiresMissing' }],
  }),
  fixture('conformance-channel-ttl', {
    description: 'Writes that expire before the last one.',
    nodes: [write('a'), write('b'), write('c'), { id: 'ttl-wait', typeId: 'core.delay', config: { ms: 300 } }, write('d')],
  }),
  fixture('conformance-append-ordering', {
    description: 'Appends to one channel, in order.',
    nodes: ['first', 'second', 'third'].map((value) => ({
      id: `write-${value}`,
      typeId: 'core.channelWrite',
      config: { channelName: 'events', reducer: 'append', value },
    })),
  }),
  fixture('conformance-configurable-schema', {
    description: 'Says which options a run of it may have.',
    nodes: [noop('noop')],
    configurableSchema: {
      type: 'object',
      additionalProperties: false,
      properties: { recursionLimit: { type: 'integer', minimum: 1 }, tags: { type: 'array', items: { type: 'string' } } },
    },
  }),
  fixture('conformance-approval', {
    description: 'Waits for an approval.',
    nodes: [gate({ title: 'Approve?', actions: ['accept', 'reject'] })],
    settings: { timeout: 0 },
  }),
  fixture('conformance-approval-refine', {
    description: 'Waits for an approval that may ask for changes.',
    nodes: [gate({ title: 'Approve or refine?', actions: ['accept', 'reject', 'refine'] })],
    settings: { timeout: 0 },
  }),
  fixture('conformance-approval-edit-accept', {
    description: 'Waits for an approval that may bring its own version.',
    nodes: [gate({ title: 'Approve or edit?', actions: ['accept', 'reject', 'edit-accept'] })],
    settings: { timeout: 0 },
  }),
  fixture('conformance-clarification', {
    description: 'Waits for an answer.',
    nodes: [{ id: 'ask', typeId: 'core.clarificationGate', config: { questions: [{ id: 'q1', question: 'Which colour?' }] } }],
    settings: { timeout: 0 },
  }),
  fixture('conformance-interrupt-auth-required', {
    description: 'Waits for an approval by someone with a credential.',
    nodes: [gate({ title: 'Approve, with a credential?', actions: ['accept', 'reject'], profile: 'openwop-interrupt-auth-required' })],
    settings: { timeout: 0 },
  }),
  fixture('conformance-interrupt-external-event', {
    description: 'Waits for something to happen elsewhere.',
    nodes: [
      {
        id: 'wait-for-external',
        typeId: 'core.interrupt',
        config: {
          kind: 'external-event',
          data: { eventType: 'conformance.external.completed', correlation: { orderId: 'fixture-order-1', status: 'completed' } },
          timeoutMs: 60_000,
        },
      },
    ],
    settings: { timeout: 0 },
  }),
  fixture('conformance-interrupt-quorum', {
    description: 'Waits for three approvals; the majority may refuse.',
    nodes: [
      gate({
        title: 'Approve, three of you?',
        actions: ['accept', 'reject'],
        requiredApprovals: 3,
        rejectionPolicy: 'majority',
        approversList: [],
      }),
    ],
    settings: { timeout: 0 },
  }),
  fixture('conformance-interrupt-parent-child-cancel', {
    description: 'Starts a run that waits, and takes it along when it is cancelled.',
    nodes: [
      {
        id: 'spawn-child',
        typeId: 'core.subWorkflow',
        config: { workflowId: 'conformance-interrupt-parent-child-cancel-child', propagateCancellation: true },
      },
    ],
    settings: { timeout: 0 },
  }),
  fixture('conformance-interrupt-parent-child-cancel-child', {
    description: 'Waits until it is cancelled with its parent.',
    nodes: [gate({ title: 'Approve the child?', actions: ['accept', 'reject'] }, 'child-gate')],
    settings: { timeout: 0 },
  }),
  fixture('conformance-subworkflow-parent', {
    description: 'Runs another workflow and takes its result.',
    nodes: [
      noop('parent-start'),
      {
        id: 'subwf-call',
        typeId: 'core.subWorkflow',
        config: {
          workflowId: 'conformance-subworkflow-child',
          waitForCompletion: true,
          onChildFailure: 'fail-parent',
          outputMapping: { childOutcome: 'childResult' },
        },
      },
      noop('parent-end'),
    ],
    settings: { timeout: 60_000, maxRetries: 0 },
  }),
  fixture('conformance-subworkflow-child', {
    description: 'Is run by another workflow.',
    nodes: ['child-n1', 'child-n2'].map(noop),
    variables: [{ name: 'childResult', type: 'string', description: 'What the parent takes.', defaultValue: 'child-completed' }],
  }),
  fixture('conformance-replay-side-effect', {
    description: 'An effect that a cancelled run never came to.',
    nodes: [sleep('core.conformance.hold'), { id: 'effect', typeId: 'core.conformance.side-effect' }],
    variables: [delayMs(30_000, '1 to 60000')],
    settings: { timeout: 60_000 },
  }),
];

/** Calls a tool of the MCP server that the suite itself runs. */
const WITH_MCP_SERVER = [
  fixture('conformance-mcp-tool-roundtrip', {
    description: 'Calls a tool of the MCP server that the host was told of.',
    nodes: [
      {
        id: 'mcp-call',
        typeId: 'core.conformance.mcp-invoke',
        config: { mcp: { tool: 'echo', arguments: { text: 'roundtrip-probe' } } },
      },
    ],
    variables: [{ name: 'text', type: 'string', description: 'What the suite sends along.', defaultValue: 'roundtrip-probe' }],
    settings: { timeout: 0 },
  }),
];

/** Every fixture this host can run as it is meant: the one that needs an MCP server only where there is one. */
export const fixturesFor = ({ mcpServerUrl } = {}) => (mcpServerUrl ? [...FIXTURES, ...WITH_MCP_SERVER] : FIXTURES);

/** The mount that fixtures call. Every revision we speak: which one the suite's server offers is the suite's business. */
export const conformanceMount = (mcpServerUrl) => ({
  url: mcpServerUrl,
  versionPolicy: { allow: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'] },
  description: 'The MCP server of the conformance suite.',
});

const AT_ONCE = 4;

/** Registers the fixtures as each key's tenant, over HTTP as anyone would. What stands there already is left alone. */
export async function seedFixtures({ baseUrl, keys, mcpServerUrl, signal }) {
  for (const key of keys) {
    const ask = (method, path, body) =>
      fetch(`${baseUrl}${path}`, {
        method,
        signal,
        headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      });
    const put = async (path, body) => {
      const response = await ask('PUT', path, body);
      if (!response.ok) throw new Error(`PUT ${path} answered ${response.status}: ${await response.text()}`);
    };
    if (mcpServerUrl) await put('/v1/host/isthmus/mounts/conformance', conformanceMount(mcpServerUrl));
    const waiting = [...fixturesFor({ mcpServerUrl })];
    const work = async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const known = await ask('GET', `/v1/workflows/${next.id}`);
        if (known.ok && isEqual(await known.json(), next)) continue;
        await put(`/v1/host/isthmus/workflows/${next.id}`, next);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }
}

/** Deeply, whatever the order of members. */
function isEqual(a, b) {
  if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null) return a === b;
  const names = Object.keys(a);
  return (
    Array.isArray(a) === Array.isArray(b) &&
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && isEqual(a[name], b[name]))
  );
}
