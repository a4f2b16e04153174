import {
  type ApprovalData,
  ApprovalResume,
  ClarificationResume,
  type ClarificationData,
  ENGINE_VERSION,
  interruptId,
  type InterruptRequest,
  isTerminal,
  type Json,
  type JsonObject,
  type Payload,
  type RunError,
  validationError,
  WopError,
} from '@isthmus/protocol';
import { apply } from './apply.js';
import { tally } from './approval.js';
import type { Graph } from './graph.js';
import { contentOf, outputsOf } from './outputs.js';
import { isHandled, readiness } from './readiness.js';
import { type Interrupt, type LoggedEvent, type NewEvent, openInterrupts, type RunState, type Stored, type ValueRef } from './state.js';

/** What executing a node came to. */
export type Outcome =
  | {
      readonly is: 'completed';
      readonly outputs: Stored;
      readonly sets?: readonly { readonly name: string; readonly next: Stored }[];
      readonly before?: readonly NewEvent[];
    }
  | { readonly is: 'failed'; readonly error: RunError; readonly before?: readonly NewEvent[] }
  | { readonly is: 'suspended'; readonly requests: readonly Asked[] };
export type Asked = { readonly request: InterruptRequest; readonly artifact?: ValueRef; readonly untrusted?: boolean };

/** Whose answer it is: a principal, as authz knows it. */
export type Wish =
  | { readonly type: 'start'; readonly started: Omit<Payload<'run.started'>, 'engineVersion' | 'activityIdentityRecipe'> }
  /** What follows from where the run stands, with nothing executed: a run whose first nodes are all disabled has no other wish. */
  | { readonly type: 'proceed' }
  | { readonly type: 'begin'; readonly nodeId: string; readonly maxExecutions: number }
  | { readonly type: 'announce'; readonly event: NewEvent<'agent.toolCalled'> }
  | { readonly type: 'report'; readonly nodeId: string; readonly outcome: Outcome; readonly edges: Readonly<Record<string, boolean>> }
  | {
      readonly type: 'resolve';
      readonly target: { readonly nodeId: string } | { readonly interruptId: string };
      readonly resumeValue: Json;
      readonly by: string;
    }
  | { readonly type: 'cancel'; readonly reason?: string; readonly by: string }
  | { readonly type: 'expire'; readonly limitMs: number; readonly observedMs: number }
  | { readonly type: 'poison'; readonly takeovers: number };
/** A wish put to a run, with the time it is put. */
export type Command = Wish & { readonly at: number };

export type Decision =
  | { readonly is: 'events'; readonly events: readonly NewEvent[] }
  | { readonly is: 'rejected'; readonly error: WopError };

const RECIPE = 'openwop:activity:v2';
const NOTHING: Decision = { is: 'events', events: [] };
const events = (...list: NewEvent[]): Decision => ({ is: 'events', events: list });
const rejected = (error: WopError): Decision => ({ is: 'rejected', error });

type Deciders = { readonly [T in Command['type']]: (graph: Graph, state: RunState, command: Extract<Command, { type: T }>) => Decision };

const DECIDERS: Deciders = {
  start: (_graph, state, { started }) =>
    state.head >= 0
      ? NOTHING
      : events({ type: 'run.started', payload: { ...started, engineVersion: String(ENGINE_VERSION), activityIdentityRecipe: RECIPE } }),

  proceed: () => NOTHING,

  // The node that would go over the ceiling gets no node.started. (RFC 0058)
  begin: (graph, state, { nodeId, maxExecutions }) => {
    if (isTerminal(state.status) || state.nodes.has(nodeId)) return NOTHING;
    if (state.executions >= maxExecutions) {
      const observed = state.executions + 1;
      return events(
        { type: 'cap.breached', payload: { kind: 'node-executions', limit: maxExecutions, observed, nodeId } },
        {
          type: 'run.failed',
          payload: {
            error: {
              code: 'recursion_limit_exceeded',
              message: `The run may execute ${maxExecutions} nodes; "${nodeId}" would be number ${observed}.`,
            },
          },
        },
      );
    }
    return events({ type: 'node.started', payload: { nodeId, typeId: graph.nodes.get(nodeId)?.typeId ?? '', attempt: 0 } });
  },

  announce: (_graph, state, { event }) => (isTerminal(state.status) || state.calls.has(event.payload.callId) ? NOTHING : events(event)),

  // A late report is not an error: the attempt it speaks of is gone. (idempotency.md, layer 2)
  report: (_graph, state, { nodeId, outcome, edges }) => {
    if (isTerminal(state.status) || state.nodes.get(nodeId)?.status !== 'running') return NOTHING;
    if (outcome.is === 'suspended') return events(...suspension(state, nodeId, outcome.requests));
    const before = outcome.before ?? [];
    if (outcome.is === 'failed')
      return events(...before, { type: 'node.failed', payload: { nodeId, error: outcome.error, attempts: 1 }, facts: { edges } });
    const changes = (outcome.sets ?? []).map(({ name, next }) => variableChanged(state, name, next, nodeId));
    return events(...before, ...changes, {
      type: 'node.completed',
      payload: { nodeId, outputs: contentOf(outcome.outputs) as JsonObject },
      ...untrusted(outcome.outputs),
      facts: { edges, ...(outcome.outputs.is === 'ref' && { value: refOf(outcome.outputs) }) },
    });
  },

  resolve: (_graph, state, command) => resolve(state, command),

  cancel: (_graph, state, { reason, by }) =>
    isTerminal(state.status)
      ? NOTHING
      : events({ type: 'run.cancelled', payload: { ...(reason !== undefined && { reason }), cancelledBy: by } }),

  expire: (_graph, state, { limitMs, observedMs }) =>
    isTerminal(state.status)
      ? NOTHING
      : events(
          { type: 'cap.breached', payload: { kind: 'run-duration', limit: limitMs, observed: Math.max(observedMs, limitMs + 1) } },
          { type: 'run.failed', payload: { error: { code: 'run_timeout', message: `The run may take ${limitMs} ms.` } } },
        ),

  poison: (_graph, state, { takeovers }) =>
    isTerminal(state.status)
      ? NOTHING
      : events({
          type: 'run.failed',
          payload: {
            error: {
              code: 'run_poisoned',
              message: `The run was taken over ${takeovers} times without a new event and was ended so that it cannot harm others.`,
            },
          },
        }),
};

/**
 * What a wish causes, as one batch: its own facts and all that follows from them without executing anything (branches not
 * taken, the end of the run). A late or doubled report decides to nothing; only a wish that cannot be granted is rejected.
 */
export function decide(graph: Graph, state: RunState, command: Command): Decision {
  const decision = (DECIDERS[command.type] as (graph: Graph, state: RunState, command: Command) => Decision)(graph, state, command);
  if (decision.is === 'rejected') return decision;
  // run.started is committed alone, with the run's row; what follows from it is the driver's to append.
  if (command.type === 'start' || (decision.events.length === 0 && command.type !== 'proceed')) return decision;
  const after = decision.events.reduce((now, event) => apply(now, logged(event, now.head + 1, command.at)), state);
  return { is: 'events', events: [...decision.events, ...consequences(graph, after, command.at)] };
}

/** A fact as it will stand in the log. */
export const logged = (event: NewEvent, sequence: number, at: number): LoggedEvent => ({ ...event, sequence, at }) as LoggedEvent;

function consequences(graph: Graph, state: RunState, at: number): readonly NewEvent[] {
  const found: NewEvent[] = [];
  let now = state;
  const add = (event: NewEvent): void => {
    found.push(event);
    now = apply(now, logged(event, now.head + 1, at));
  };
  const unhandled = [...now.nodes].find(([id, node]) => node.status === 'failed' && !isHandled(graph, now, id));
  if (unhandled && !isTerminal(now.status)) {
    const [failedNodeId, { error }] = unhandled;
    add({
      type: 'run.failed',
      payload: { error: error ?? { code: 'node_failed', message: `Node "${failedNodeId}" failed.` }, failedNodeId },
    });
  }
  for (let again = true; again && !isTerminal(now.status); ) {
    again = false;
    for (const nodeId of graph.nodes.keys()) {
      if (now.nodes.has(nodeId)) continue;
      const ready = readiness(graph, now, nodeId);
      if (ready.is !== 'skip') continue;
      add({ type: 'node.skipped', payload: { nodeId, reason: ready.reason } });
      again = true;
    }
  }
  if (!isTerminal(now.status) && isDone(graph, now))
    add({
      type: 'run.completed',
      payload: { outputs: outputsOf(graph, now, contentOf) },
      ...(someUntrusted(graph, now) && { untrusted: true }),
    });
  return found;
}

const isDone = (graph: Graph, state: RunState): boolean =>
  [...graph.nodes.keys()].every((nodeId) => {
    const status = state.nodes.get(nodeId)?.status;
    return status === 'completed' || status === 'failed' || status === 'skipped';
  });

const someUntrusted = (graph: Graph, state: RunState): boolean => {
  let found = false;
  outputsOf(graph, state, (stored) => {
    found ||= stored.is === 'ref' && stored.untrusted;
    return null;
  });
  return found;
};

function variableChanged(state: RunState, name: string, next: Stored, nodeId: string): NewEvent<'variable.changed'> {
  const previous = state.variables.get(name);
  return {
    type: 'variable.changed',
    payload: { name, ...(previous && { previous: contentOf(previous) }), next: contentOf(next), nodeId },
    ...untrusted(next),
    ...(next.is === 'ref' && { facts: { value: refOf(next) } }),
  };
}

const untrusted = (stored: Stored): { untrusted?: true } => (stored.is === 'ref' && stored.untrusted ? { untrusted: true } : {});
const refOf = ({ ref, sha256, bytes, untrusted }: ValueRef): ValueRef => ({ ref, sha256, bytes, untrusted });

/** Durable before it is visible: the requests and the suspension are one batch. Order as the suites read it (execution §3.4). */
function suspension(state: RunState, nodeId: string, asked: readonly Asked[]): readonly NewEvent[] {
  const known = new Set([...state.interrupts.values()].map(({ key }) => key));
  const fresh = asked.filter(({ request }) => !known.has(request.key));
  const requests = fresh.map((item, index) => ({ ...item, id: interruptId(state.runId, state.interrupts.size + index) }));
  const announced = requests.flatMap(({ request, artifact, untrusted, id }): NewEvent[] => {
    const { kind, key, data, resumeSchema, timeoutMs, metadata } = request;
    const requested: NewEvent<'interrupt.requested'> = {
      type: 'interrupt.requested',
      payload: {
        nodeId,
        interruptId: id,
        kind,
        key,
        data,
        ...(resumeSchema && { resumeSchema }),
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(metadata && { metadata }),
      },
      ...(artifact && { facts: { value: artifact } }),
      ...(untrusted && { untrusted: true }),
    };
    return [requested, FAMILY[kind](nodeId, id, data)];
  });
  const [first] = requests;
  if (!first) return [];
  return [
    ...announced,
    { type: 'node.suspended', payload: { nodeId, interruptId: first.id, kind: first.request.kind, key: first.request.key } },
  ];
}

const FAMILY: { readonly [K in InterruptRequest['kind']]: (nodeId: string, interruptId: string, data: JsonObject) => NewEvent } = {
  approval: (nodeId, id, data) => {
    const { artifactId, artifactType, actions, title, requiredApprovals, approversList } = data as ApprovalData;
    return {
      type: 'approval.requested',
      payload: {
        nodeId,
        artifactId,
        artifactType,
        // The event's own enum says `edit` where the interrupt's data says `edit-accept`. (contradiction 11)
        actions: actions.map((action) => (action === 'edit-accept' ? 'edit' : action)),
        interruptId: id,
        title,
        requiredApprovals,
        ...(approversList && { approversList }),
      },
    };
  },
  clarification: (nodeId, id, data) => ({
    type: 'clarification.requested',
    payload: { nodeId, questions: (data as ClarificationData).questions as JsonObject[], interruptId: id },
  }),
};

type Resolve = Extract<Command, { type: 'resolve' }>;

function resolve(state: RunState, { target, resumeValue, by }: Resolve): Decision {
  const all = [...state.interrupts.values()].filter((one) =>
    'nodeId' in target ? one.nodeId === target.nodeId : one.id === target.interruptId,
  );
  const open = all.find(({ status }) => status === 'open');
  if (all.length === 0) return rejected(new WopError('interrupt_not_found', 'Nothing waits for an answer there.'));
  if (state.status === 'cancelled') return rejected(new WopError('interrupt_cancelled', 'The run was cancelled while it waited.'));
  if (isTerminal(state.status))
    return rejected(new WopError('interrupt_already_resolved', 'The run has ended.', { runStatus: state.status }));
  if (!open) return rejected(new WopError('interrupt_already_resolved', 'Someone has answered already.'));
  return RESOLVERS[open.kind](state, open, resumeValue, by);
}

const RESOLVERS: { readonly [K in Interrupt['kind']]: (state: RunState, interrupt: Interrupt, resumeValue: Json, by: string) => Decision } =
  {
    approval: (state, interrupt, resumeValue, by) => {
      const parsed = ApprovalResume.safeParse(legacyDecision(resumeValue));
      if (!parsed.success) return rejected(validationError(parsed.error, 'resumeValue'));
      const { nodeId, id, kind } = interrupt;
      const { action, comment, feedback, refineFeedback, editedArtifactData } = parsed.data;
      const verdict = tally(interrupt, parsed.data, by);
      if (verdict.is === 'rejected') return rejected(verdict.error);
      const details = {
        ...(refineFeedback !== undefined && { refineFeedback: refineFeedback as Json }),
        ...(editedArtifactData !== undefined && { editedArtifactData }),
      };
      const received: NewEvent = {
        type: 'approval.received',
        payload: {
          nodeId,
          action,
          decidedBy: by,
          ...(comment !== undefined && { comment }),
          ...(feedback !== undefined && { feedback }),
          ...details,
        },
        ...(verdict.voter !== by && { facts: { voter: verdict.voter } }),
      };
      if (verdict.is === 'open') return events(received);
      const { voter: _, ...given } = parsed.data;
      const value = { ...given, action: verdict.action, decidedBy: by, ...(verdict.voter !== by && { voter: verdict.voter }) } as Json;
      return events(
        received,
        {
          type: 'interrupt.resolved',
          payload: { nodeId, interruptId: id, kind, action: verdict.action, resumeValue: value, ...details, resolvedBy: by },
        },
        ...resumed(state, interrupt, value),
      );
    },
    clarification: (state, interrupt, resumeValue, by) => {
      const parsed = ClarificationResume.safeParse(resumeValue);
      if (!parsed.success) return rejected(validationError(parsed.error, 'resumeValue'));
      const { nodeId, id, kind } = interrupt;
      const { action, answers = {} } = parsed.data;
      const unanswered = (interrupt.data as ClarificationData).questions.filter(
        (question) => !Object.hasOwn(answers, question.id) && isRequired(question),
      );
      if (action === 'accept' && unanswered.length > 0) {
        return rejected(
          new WopError('validation_error', `The answer to question "${unanswered[0]?.id}" is missing.`, {
            issues: unanswered.map((question) => ({ path: `answers.${question.id}`, message: 'is missing' })),
          }),
        );
      }
      const value = { action, answers } as Json;
      return events(
        ...(action === 'accept'
          ? [{ type: 'clarification.resolved' as const, payload: { nodeId, answers: answers as JsonObject, answeredBy: by } }]
          : []),
        { type: 'interrupt.resolved', payload: { nodeId, interruptId: id, kind, action, resumeValue: value, resolvedBy: by } },
        ...resumed(state, interrupt, value),
      );
    },
  };

const isRequired = (question: { readonly [key: string]: unknown }): boolean => question['required'] !== false;

/** The node goes on when nothing it asked is open any more. */
function resumed(state: RunState, interrupt: Interrupt, resumeValue: Json): readonly NewEvent[] {
  const others = openInterrupts(state).filter(({ nodeId, id }) => nodeId === interrupt.nodeId && id !== interrupt.id);
  return others.length > 0 ? [] : [{ type: 'node.resumed', payload: { nodeId: interrupt.nodeId, interruptId: interrupt.id, resumeValue } }];
}

/** `{decision}` is the older form. (execution §3.2) */
function legacyDecision(value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || 'action' in value || !('decision' in value)) return value;
  const { decision, feedback, ...rest } = value as { decision: Json; feedback?: Json };
  if (decision === 'approved') return { ...rest, action: 'accept' };
  if (decision === 'rejected' && typeof feedback === 'string')
    return { ...rest, action: 'refine', refineFeedback: { scope: 'whole', text: feedback } };
  return decision === 'rejected' ? { ...rest, action: 'reject' } : value;
}
