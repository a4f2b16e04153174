import { expect } from '@jest/globals';
import { type EventType, type JsonObject, type Payload, WorkflowDefinition } from '@isthmus/protocol';
import { apply } from './apply.js';
import { type Command, type Decision, decide, logged, type Wish } from './decide.js';
import { compile, type Graph } from './graph.js';
import { initial, type LoggedEvent, type NewEvent, type RunState } from './state.js';

/** When everything happens in a test of the core, unless it says otherwise. */
export const AT = 1_700_000_000_000;
export const RUN = '00000000-0000-7000-8000-000000000001';

type NodeSpec = string | { readonly id: string; readonly typeId?: string; readonly [member: string]: unknown };
type EdgeSpec =
  | string
  | { readonly id: string; readonly sourceNodeId: string; readonly targetNodeId: string; readonly [member: string]: unknown };

/** A definition out of the parts that matter: nodes as `a` or `{id, …}`, edges as `a>b` (its id, too) or `{id, …}`. */
export const definitionOf = (nodes: readonly NodeSpec[], edges: readonly EdgeSpec[] = [], rest: object = {}): WorkflowDefinition =>
  WorkflowDefinition.parse({
    id: 'w',
    name: 'w',
    nodes: nodes.map((node) => ({ typeId: 'core.noop', ...(typeof node === 'string' ? { id: node } : node) })),
    edges: edges.map((edge) =>
      typeof edge === 'string' ? { id: edge.replace('>', '-'), sourceNodeId: edge.split('>')[0], targetNodeId: edge.split('>')[1] } : edge,
    ),
    ...rest,
  });

export const graphOf = (...parts: Parameters<typeof definitionOf>): Graph => compile(definitionOf(...parts));

/** A fact of any type, with what of its payload matters. */
export const fact = <T extends EventType>(type: T, payload: Payload<T>, rest: Pick<NewEvent, 'facts' | 'untrusted'> = {}): NewEvent =>
  ({ type, payload, ...rest }) as unknown as NewEvent;

export const started = (inputs: JsonObject = {}): NewEvent =>
  fact('run.started', {
    workflowId: 'w',
    inputs,
    transport: 'rest',
    engineVersion: '1',
    owner: { tenant: 't', workspace: 'ws', principal: 'p' },
    activityIdentityRecipe: 'openwop:activity:v2',
  });
export const began = (nodeId: string): NewEvent => fact('node.started', { nodeId, typeId: 'core.noop', attempt: 0 });
export const completed = (nodeId: string, outputs: JsonObject = {}, edges: Record<string, boolean> = {}): NewEvent =>
  fact('node.completed', { nodeId, outputs }, { facts: { edges } });
export const failed = (nodeId: string, edges: Record<string, boolean> = {}): NewEvent =>
  fact('node.failed', { nodeId, error: { code: 'node_failed', message: 'It failed.' }, attempts: 1 }, { facts: { edges } });
export const skipped = (nodeId: string): NewEvent => fact('node.skipped', { nodeId, reason: 'no branch leads here' });

/** Facts as they stand in a log that began before them. */
export const logOf = (events: readonly NewEvent[], from = 0, at = AT): readonly LoggedEvent[] =>
  events.map((event, index) => logged(event, from + index, at));

export const stateOf = (...events: readonly NewEvent[]): RunState => logOf(events).reduce(apply, initial(RUN));

/** `type` or `type:node`, as tests compare it. */
export const shapeOf = (events: readonly { readonly type: string; readonly payload: object }[]): string[] =>
  events.map(({ type, payload }) => ('nodeId' in payload && type !== 'cap.breached' ? `${type}:${String(payload.nodeId)}` : type));

type JsonData = Readonly<Record<string, unknown>>;

type After = {
  readonly events: readonly NewEvent[];
  /** Where the run stands after what was decided. */
  readonly state: RunState;
  /** The decision is these facts, in this order. */
  yields(...shapes: readonly string[]): After;
  /** The wish cannot be granted. */
  isRejected(code: string): void;
  /** One more wish, put to what the first one led to. */
  when(wish: Wish & { readonly at?: number }): After;
};

/** `given(graph, facts).when(wish).yields('node.started:a')` */
export const given = (graph: Graph, events: readonly NewEvent[]): Pick<After, 'when'> => ({
  when: (wish) => put(graph, stateOf(...events), wish),
});

export function put(graph: Graph, state: RunState, wish: Wish & { readonly at?: number }): After {
  const command: Command = { at: AT, ...wish };
  const decision: Decision = decide(graph, state, command);
  const events = decision.is === 'events' ? decision.events : [];
  const after = logOf(events, state.head + 1, command.at).reduce(apply, state);
  const result: After = {
    events,
    state: after,
    yields: (...shapes) => {
      expect(decision.is === 'rejected' ? `rejected: ${decision.error.code}` : shapeOf(events)).toEqual(shapes);
      return result;
    },
    isRejected: (code) => {
      expect(decision).toMatchObject({ is: 'rejected', error: { code } });
      expect(after).toBe(state);
    },
    when: (next) => put(graph, after, next),
  };
  return result;
}

/** What a node came to, as the driver reports it. */
export const done = (nodeId: string, outputs: JsonObject = {}, edges: Record<string, boolean> = {}): Wish => ({
  type: 'report',
  nodeId,
  outcome: { is: 'completed', outputs: { is: 'inline', value: outputs } },
  edges,
});
export const broke = (nodeId: string, edges: Record<string, boolean> = {}): Wish => ({
  type: 'report',
  nodeId,
  outcome: { is: 'failed', error: { code: 'no_luck', message: 'Nothing found.' } },
  edges,
});
export const begin = (nodeId: string, maxExecutions = 1_000): Wish => ({ type: 'begin', nodeId, maxExecutions });
export const cancel: Wish = { type: 'cancel', by: 'p' };

const GATE = {
  artifactId: 'a',
  artifactType: 'node.inputs',
  title: 'Go?',
  actions: ['accept', 'reject'],
  requiredApprovals: 1,
  rejectionPolicy: 'single-veto',
};
/** The node asks people to approve; `data` says how. */
export const asksApproval = (nodeId: string, data: JsonData = {}): Wish => ({
  type: 'report',
  nodeId,
  outcome: { is: 'suspended', requests: [{ request: { kind: 'approval', key: nodeId, data: { ...GATE, ...data } as JsonObject } }] },
  edges: {},
});
export const asksQuestions = (nodeId: string, ...questions: readonly (string | JsonObject)[]): Wish => ({
  type: 'report',
  nodeId,
  outcome: {
    is: 'suspended',
    requests: [
      {
        request: {
          kind: 'clarification',
          key: nodeId,
          data: { questions: questions.map((one) => (typeof one === 'string' ? { id: one, question: `${one}?` } : one)) },
        },
      },
    ],
  },
  edges: {},
});
export const answers = (nodeId: string, resumeValue: JsonObject, by = 'ada'): Wish => ({
  type: 'resolve',
  target: { nodeId },
  resumeValue,
  by: { principal: by },
});

/** For what could take years: fails when it costs more than `ms` of the processor, however busy the machine is. */
export function inTime(ms: number, work: () => void): void {
  const began = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(began);
  expect((user + system) / 1_000).toBeLessThan(ms);
}
