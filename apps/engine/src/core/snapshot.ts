import {
  ENGINE_VERSION,
  EVENT_LOG_SCHEMA_VERSION,
  isoTime,
  isTerminal,
  type Json,
  type JsonObject,
  type OpenInterrupt,
  type RunOutcome,
  type RunSnapshot,
} from '@isthmus/protocol';
import { channelValue } from './channels.js';
import type { Graph } from './graph.js';
import type { Read } from './inputs.js';
import { MASKED, outputsOf } from './outputs.js';
import { type Interrupt, openInterrupts, type RunState, type Stored } from './state.js';

/** What a run was asked to be, besides its inputs: echoed as it came. */
export type RunOptions = { readonly configurable?: JsonObject; readonly tags?: readonly string[]; readonly metadata?: JsonObject };

/** What stands beside the log: the revision, where the run comes from, the runs it started. */
export type Around = {
  readonly revision: number;
  readonly options: RunOptions;
  readonly family: {
    readonly parentRun: string | null;
    readonly parentNode: string | null;
    readonly sourceRun: string | null;
    readonly mode: 'replay' | 'branch' | null;
  };
  readonly children?: readonly { readonly runId: string; readonly status: string }[];
};

/** A run as `GET /v1/runs/{runId}` shows it: a projection of the fold. (run-snapshot.schema.json) */
export function snapshotOf(graph: Graph, state: RunState, { revision, options, family, children = [] }: Around, read: Read): RunSnapshot {
  const open = isTerminal(state.status) ? [] : openInterrupts(state).map((interrupt) => openInterrupt(interrupt, read));
  const [first] = open;
  const running = [...state.nodes].find(([, { status }]) => status === 'running')?.[0];
  const current = first?.nodeId ?? (isTerminal(state.status) ? undefined : running);
  return {
    runId: state.runId,
    workflowId: state.workflowId,
    status: state.status,
    owner: state.owner,
    ...(current !== undefined && { currentNodeId: current }),
    startedAt: isoTime(state.startedAt),
    ...(state.endedAt !== undefined && { completedAt: isoTime(state.endedAt) }),
    nodeStates: Object.fromEntries(
      [...state.nodes].map(([id, { status, attempt, error }]) => [
        id,
        { status, attempt, ...(error && { error: error as unknown as Json }) },
      ]),
    ),
    variables: variablesOf(state, read),
    ...(state.channels.size > 0 && {
      channels: Object.fromEntries([...state.channels].map(([name, channel]) => [name, channelValue(channel)])),
    }),
    ...(state.pausedAt !== undefined && { pausedAt: isoTime(state.pausedAt) }),
    inputs: state.inputs,
    ...(first && { interrupt: first, interrupts: open }),
    ...(state.error && { error: state.error }),
    ...(state.status === 'completed' && {
      outputs: outputsOf(graph, state, (stored) => (stored.is === 'ref' && stored.secret ? { value: MASKED } : read(stored))),
    }),
    engineVersion: String(ENGINE_VERSION),
    eventLogSchemaVersion: EVENT_LOG_SCHEMA_VERSION,
    workflowRevision: revision,
    ...(family.parentRun !== null && {
      parentRunId: family.parentRun,
      ...(family.parentNode !== null && { parentNodeId: family.parentNode }),
    }),
    ...(children.length > 0 && { childRuns: [...children] }),
    ...(family.sourceRun !== null && { sourceRunId: family.sourceRun }),
    ...(family.mode !== null && { mode: family.mode }),
    ...(options.configurable && { configurable: options.configurable }),
    ...(options.tags && { tags: [...options.tags] }),
    ...(options.metadata && { metadata: options.metadata }),
  };
}

/** Inputs and variables by name, results of nodes at their id, with their trust. (rulings, Wire) */
function variablesOf(state: RunState, read: Read): { [name: string]: Json } {
  const labelled = (stored: Stored): Json => {
    if (stored.is === 'ref' && stored.secret) return MASKED;
    const value = read(stored);
    const isPlain = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (stored.is === 'inline' || !stored.untrusted) return value;
    return isPlain ? { ...(value as JsonObject), contentTrust: 'untrusted' } : { value, contentTrust: 'untrusted' };
  };
  const results = [...state.nodes].flatMap(([id, { outputs }]) =>
    outputs && !state.variables.has(id) ? [[id, labelled(outputs)] as const] : [],
  );
  return Object.fromEntries([...[...state.variables].map(([name, value]) => [name, labelled(value)] as const), ...results]);
}

function openInterrupt({ id, nodeId, kind, key, data, artifact, metadata }: Interrupt, read: Read): OpenInterrupt {
  const shown = artifact
    ? { ...data, artifactData: read({ is: 'ref', ...artifact }), ...(artifact.untrusted && { contentTrust: 'untrusted' }) }
    : data;
  return { interruptId: id, nodeId, kind, key, payload: shown, ...(metadata && { metadata }) };
}

/** A run as an MCP answer needs it. */
export function outcomeOf(graph: Graph, state: RunState, read: Read): RunOutcome {
  if (state.status === 'completed') {
    let untrusted = false;
    const outputs = outputsOf(graph, state, (stored) => {
      untrusted ||= stored.is === 'ref' && stored.untrusted;
      return stored.is === 'ref' && stored.secret ? { value: MASKED } : read(stored);
    });
    return { is: 'completed', outputs, contentTrust: untrusted ? 'untrusted' : 'trusted' };
  }
  if (state.status === 'failed') return { is: 'failed', error: state.error ?? { code: 'internal_error', message: 'The run failed.' } };
  if (state.status === 'cancelled') return { is: 'cancelled', ...(state.reason !== undefined && { reason: state.reason }) };
  const open = openInterrupts(state);
  if (open.length === 0) return { is: 'working', status: state.status };
  return { is: 'waiting', status: state.status, interrupts: open.map((interrupt) => openInterrupt(interrupt, read)) };
}
