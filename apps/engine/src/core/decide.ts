import { ENGINE_VERSION, isTerminal, type JsonObject, WopError } from '@isthmus/protocol';
import { apply } from './apply.js';
import { type Command, type CommandOf, type Decision, events, NOTHING, rejected } from './decision.js';
import type { Graph } from './graph.js';
import { contentOf, outputsOf } from './outputs.js';
import { isHandled, readiness } from './readiness.js';
import { resolve, timedOut } from './resolution.js';
import { retryDelay } from './retries.js';
import type { LoggedEvent, NewEvent, RunState, Stored, ValueRef } from './state.js';
import { suspension } from './suspension.js';

export type { Answerer, Asked, Command, Decision, Outcome, Wish } from './decision.js';

const RECIPE = 'openwop:activity:v2';

type Deciders = { readonly [T in Command['type']]: (graph: Graph, state: RunState, command: CommandOf<T>) => Decision };

/** Wishes that an ended run simply no longer has. */
const alive = <T extends Command['type']>(decider: Deciders[T]): Deciders[T] =>
  ((graph: Graph, state: RunState, command: CommandOf<T>) =>
    isTerminal(state.status) ? NOTHING : decider(graph, state, command)) as Deciders[T];

const failure = (code: string, message: string): NewEvent => ({ type: 'run.failed', payload: { error: { code, message } } });

const DECIDERS: Deciders = {
  start: (_graph, state, { started, inputRefs }) =>
    state.head >= 0
      ? NOTHING
      : events({
          type: 'run.started',
          payload: { ...started, engineVersion: String(ENGINE_VERSION), activityIdentityRecipe: RECIPE },
          ...(inputRefs && { facts: { inputs: inputRefs } }),
        }),

  proceed: () => NOTHING,

  // The node that would go over the ceiling gets no node.started. (RFC 0058)
  begin: alive<'begin'>((graph, state, { nodeId, maxExecutions }) => {
    const node = state.nodes.get(nodeId);
    if (node && node.status !== 'retrying') return NOTHING;
    const observed = state.executions + 1;
    if (observed > maxExecutions) {
      return events(
        { type: 'cap.breached', payload: { kind: 'node-executions', limit: maxExecutions, observed, nodeId } },
        failure('recursion_limit_exceeded', `The run may execute ${maxExecutions} nodes; "${nodeId}" would be number ${observed}.`),
      );
    }
    const attempt = node ? node.attempt + 1 : 0;
    return events({ type: 'node.started', payload: { nodeId, typeId: graph.nodes.get(nodeId)?.typeId ?? '', attempt } });
  }),

  announce: alive<'announce'>((_graph, state, { event }) => (isKnown(state, event) ? NOTHING : events(event))),

  // A late report is not an error: the attempt it speaks of is gone. (idempotency.md, layer 2)
  report: alive<'report'>((graph, state, { nodeId, outcome, edges }) => {
    const node = state.nodes.get(nodeId);
    if (node?.status !== 'running') return NOTHING;
    if (outcome.is === 'suspended') return events(...suspension(state, nodeId, outcome.requests));
    const before = outcome.before ?? [];
    if (outcome.is === 'failed') {
      const delayMs = retryDelay(graph, nodeId, node.attempt, outcome.error);
      const attempts = node.attempt + 1;
      if (delayMs !== undefined)
        return events(...before, { type: 'node.retried', payload: { nodeId, attempt: attempts, delayMs, lastError: outcome.error } });
      return events(...before, { type: 'node.failed', payload: { nodeId, error: outcome.error, attempts }, facts: { edges } });
    }
    const changes = (outcome.sets ?? []).map(({ name, next }) => variableChanged(state, name, next, nodeId));
    return events(...before, ...changes, {
      type: 'node.completed',
      payload: { nodeId, outputs: shown(outcome.outputs) },
      ...untrusted(outcome.outputs),
      facts: { edges, ...(outcome.outputs.is === 'ref' && { value: refOf(outcome.outputs) }) },
    });
  }),

  resolve: (_graph, state, command) => resolve(state, command),
  timeout: (_graph, state, command) => timedOut(state, command),

  pause: (_graph, state, { drainPolicy, reason, by }) => {
    if (isTerminal(state.status) || state.pausedAt !== undefined) return rejected(standing(state, 'paused'));
    return events({ type: 'run.paused', payload: { ...(reason !== undefined && { reason }), drainPolicy, pausedBy: by } });
  },
  resume: (_graph, state, { reason, by }) => {
    if (isTerminal(state.status) || state.pausedAt === undefined) return rejected(standing(state, 'resumed'));
    return events({ type: 'run.resumed', payload: { ...(reason !== undefined && { reason }), resumedBy: by } });
  },

  cancel: alive<'cancel'>((_graph, _state, { reason, by, parentRunId }) =>
    events({
      type: 'run.cancelled',
      payload: { ...(reason !== undefined && { reason }), cancelledBy: by, ...(parentRunId !== undefined && { parentRunId }) },
    }),
  ),

  expire: alive<'expire'>((_graph, _state, { limitMs, observedMs }) =>
    events(
      { type: 'cap.breached', payload: { kind: 'run-duration', limit: limitMs, observed: Math.max(observedMs, limitMs + 1) } },
      failure('run_timeout', `The run may take ${limitMs} ms.`),
    ),
  ),

  poison: alive<'poison'>((_graph, _state, { takeovers }) =>
    events(
      failure('run_poisoned', `The run was taken over ${takeovers} times without a new event and was ended so that it cannot harm others.`),
    ),
  ),

  recorded: alive<'recorded'>((_graph, _state, { events: recorded }) => events(...recorded)),
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

function standing(state: RunState, wish: string): WopError {
  const message = isTerminal(state.status)
    ? 'The run has ended.'
    : `The run is ${state.pausedAt === undefined ? 'not paused' : 'paused already'}, so it cannot be ${wish}.`;
  return new WopError(isTerminal(state.status) ? 'run_terminal' : 'run_state_conflict', message, {
    runStatus: state.status,
    ...(state.pausedAt !== undefined && { pausedAt: state.pausedAt }),
  });
}

function isKnown(state: RunState, event: CommandOf<'announce'>['event']): boolean {
  return event.type === 'agent.toolCalled' ? state.calls.has(event.payload.callId) : state.children.has(event.payload.childRunId);
}

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
  if (!isTerminal(now.status) && now.pausedAt === undefined && isDone(graph, now)) {
    add({
      type: 'run.completed',
      payload: { outputs: outputsOf(graph, now, contentOf) },
      ...(someUntrusted(graph, now) && { untrusted: true }),
    });
  }
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

/** Outputs are an object on the wire, also where there is nothing to be seen. */
function shown(outputs: Stored): JsonObject {
  const content = contentOf(outputs);
  return typeof content === 'object' && content !== null && !Array.isArray(content) ? (content as JsonObject) : { value: content };
}

const untrusted = (stored: Stored): { untrusted?: true } => (stored.is === 'ref' && stored.untrusted ? { untrusted: true } : {});
const refOf = ({ ref, sha256, bytes, untrusted, secret }: ValueRef): ValueRef => ({
  ref,
  sha256,
  bytes,
  untrusted,
  ...(secret && { secret }),
});
