import { INTERRUPTS, type InterruptKind, isTerminal, type JsonObject, type RunStatus } from '@isthmus/protocol';
import { writeChannel } from './channels.js';
import { type Facts, type Interrupt, inline, type LoggedEvent, type NodeRun, openInterrupts, type RunState, type Stored } from './state.js';

type Handlers = { readonly [T in LoggedEvent['type']]: (state: RunState, event: LoggedEvent<T>) => RunState };

/** What each fact means. A new event type does not compile until it has a row. */
const HANDLERS: Handlers = {
  'run.started': (state, { payload, facts, at }) => ({
    ...state,
    owner: payload.owner,
    workflowId: payload.workflowId,
    inputs: payload.inputs ?? {},
    inputRefs: facts?.inputs ?? {},
    variables: variablesOf(payload.inputs ?? {}, facts?.inputs),
    status: 'running',
    startedAt: at,
  }),
  'run.completed': (state, { at }) => ended(state, 'completed', at),
  'run.failed': (state, { payload, at }) => ({ ...ended(state, 'failed', at), error: payload.error }),
  'run.cancelled': (state, { payload, at }) => ({
    ...ended(state, 'cancelled', at),
    ...(payload.reason !== undefined && { reason: payload.reason }),
  }),

  'run.paused': (state, { at }) => waiting({ ...state, pausedAt: at }),
  'run.resumed': ({ pausedAt: _, ...state }) => waiting(state),

  'node.started': (state, { payload, at }) => ({
    ...withNode(state, payload.nodeId, { status: 'running', startedAt: at, attempt: payload.attempt }),
    executions: state.executions + 1,
  }),
  'node.completed': (state, { payload, facts, at }) =>
    withEdges(
      withNode(state, payload.nodeId, {
        ...nodeRun(state, payload.nodeId, at),
        status: 'completed',
        outputs: storedOf(payload.outputs ?? {}, facts?.value),
      }),
      facts?.edges,
    ),
  'node.failed': (state, { payload, facts, at }) =>
    withEdges(
      withNode(state, payload.nodeId, { ...nodeRun(state, payload.nodeId, at), status: 'failed', error: payload.error }),
      facts?.edges,
    ),
  'node.skipped': (state, { payload, at }) => withNode(state, payload.nodeId, { status: 'skipped', startedAt: at, attempt: 0 }),
  'node.suspended': (state, { payload, at }) =>
    waiting(withNode(state, payload.nodeId, { ...nodeRun(state, payload.nodeId, at), status: 'suspended' })),
  'node.resumed': (state, { payload, at }) =>
    waiting(withNode(state, payload.nodeId, { ...nodeRun(state, payload.nodeId, at), status: 'running' })),

  'node.retried': (state, { payload, at }) =>
    withNode(state, payload.nodeId, { ...nodeRun(state, payload.nodeId, at), status: 'retrying', retryAt: at + payload.delayMs }),
  'node.dispatched': (state, { payload }) => ({
    ...state,
    children: new Map(state.children).set(payload.childRunId, {
      nodeId: payload.nodeId,
      workflowId: payload.childWorkflowId,
      status: payload.childStatus ?? 'running',
    }),
  }),

  'interrupt.requested': (state, { payload, facts, at }) =>
    withInterrupt(state, {
      id: payload.interruptId,
      nodeId: payload.nodeId,
      kind: payload.kind as InterruptKind,
      key: payload.key,
      data: payload.data,
      ...(facts?.value && { artifact: facts.value }),
      ...(payload.metadata && { metadata: payload.metadata }),
      ...(payload.resumeSchema && { resumeSchema: payload.resumeSchema }),
      ...(payload.timeoutMs !== undefined && { deadline: at + payload.timeoutMs }),
      status: 'open',
      votes: [],
    }),
  'interrupt.resolved': (state, { payload }) => {
    const interrupt = state.interrupts.get(payload.interruptId);
    return interrupt
      ? waiting(
          withInterrupt(state, {
            ...interrupt,
            status: 'resolved',
            resumeValue: payload.resumeValue ?? null,
            resolvedBy: payload.resolvedBy,
          }),
        )
      : state;
  },
  'approval.requested': (state) => state,
  'approval.received': (state, { payload, facts }) => {
    const interrupt = openInterrupts(state).find(({ nodeId, kind }) => nodeId === payload.nodeId && kind === 'approval');
    if (!interrupt) return state;
    const voter = facts?.voter ?? payload.decidedBy;
    const others = interrupt.votes.filter((vote) => vote.voter !== voter);
    return withInterrupt(state, { ...interrupt, votes: [...others, { voter, action: payload.action }] });
  },
  'approval.granted': (state, { payload }) => voted(state, payload.gateId, payload.principal, 'accept'),
  'approval.rejected': (state, { payload }) => voted(state, payload.gateId, payload.principal, 'reject'),
  'approval.overridden': (state, { payload }) => voted(state, payload.gateId, payload.principal, 'accept'),
  'clarification.requested': (state) => state,
  'clarification.resolved': (state) => state,

  'agent.toolCalled': (state, { payload }) => ({ ...state, calls: new Set([...state.calls, payload.callId]) }),
  'agent.toolReturned': (state) => state,
  'variable.changed': (state, { payload, facts }) => ({
    ...state,
    variables: new Map(state.variables).set(payload.name, storedOf(payload.next, facts?.value)),
  }),
  'channel.written': (state, { payload, facts, at }) => {
    const { channel, value, reducer } = payload;
    const written = writeChannel(state.channels.get(channel), { value, reducer, at, ...facts?.channel });
    return { ...state, channels: new Map(state.channels).set(channel, written) };
  },
  'replay.diverged': (state) => state,
  'cap.breached': (state) => state,
};

/** Folds one fact. Unknown types of a newer engine are passed over: readers fold conservatively. (version-negotiation.md) */
export function apply(state: RunState, event: LoggedEvent): RunState {
  const handler = Object.hasOwn(HANDLERS, event.type)
    ? (HANDLERS[event.type] as (state: RunState, event: LoggedEvent) => RunState)
    : undefined;
  return { ...(handler ? handler(state, event) : state), head: event.sequence };
}

export const fold = (state: RunState, events: readonly LoggedEvent[]): RunState => events.reduce(apply, state);

const variablesOf = (inputs: JsonObject, refs: Facts['inputs'] = {}): ReadonlyMap<string, Stored> =>
  new Map(Object.entries(inputs).map(([name, value]) => [name, storedOf(value, Object.hasOwn(refs, name) ? refs[name] : undefined)]));

/** A vote at a governed gate, which says its votes by gate instead of by `approval.received`. */
function voted(state: RunState, gateId: string, voter: string, action: string): RunState {
  const interrupt = openInterrupts(state).find(({ data }) => data['gateId'] === gateId);
  if (!interrupt) return state;
  return withInterrupt(state, { ...interrupt, votes: [...interrupt.votes.filter((vote) => vote.voter !== voter), { voter, action }] });
}

const storedOf = (value: import('@isthmus/protocol').Json, ref: import('./state.js').ValueRef | undefined): Stored =>
  ref ? { is: 'ref', ...ref } : inline(value);

const nodeRun = (state: RunState, nodeId: string, at: number): NodeRun =>
  state.nodes.get(nodeId) ?? { status: 'running', startedAt: at, attempt: 0 };

const withNode = (state: RunState, nodeId: string, node: NodeRun): RunState => ({
  ...state,
  nodes: new Map(state.nodes).set(nodeId, node),
});

const withInterrupt = (state: RunState, interrupt: Interrupt): RunState => ({
  ...state,
  interrupts: new Map(state.interrupts).set(interrupt.id, interrupt),
});

function withEdges(state: RunState, verdicts: Readonly<Record<string, boolean>> | undefined): RunState {
  return verdicts ? { ...state, edges: new Map([...state.edges, ...Object.entries(verdicts)]) } : state;
}

const ended = (state: RunState, status: RunStatus, at: number): RunState => ({ ...state, status, endedAt: at });

/** While anything is open the run waits, in the status of what was asked first. */
function waiting(state: RunState): RunState {
  if (isTerminal(state.status)) return state;
  const [first] = openInterrupts(state);
  return { ...state, status: first ? INTERRUPTS[first.kind].status : state.pausedAt !== undefined ? 'paused' : 'running' };
}
