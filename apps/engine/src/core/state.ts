import type { EventType, InterruptKind, Json, JsonObject, Owner, Payload, RunError, RunStatus } from '@isthmus/protocol';
import type { Channel } from './channels.js';

/** A value that stands in the run's value store: state and log hold where it is, how big, and whether to trust it. */
export type ValueRef = {
  readonly ref: string;
  readonly sha256: string;
  readonly bytes: number;
  readonly untrusted: boolean;
  /** A masked variable, or what looks like a credential, or what was made of one: shown to nobody, given to nodes. */
  readonly secret?: true;
};
export type Stored = { readonly is: 'inline'; readonly value: Json } | ({ readonly is: 'ref' } & ValueRef);

export const inline = (value: Json): Stored => ({ is: 'inline', value });

/** What is recorded with an event and is nobody's business outside the engine: folding needs it, the wire does not show it. */
export type Facts = {
  /** Verdicts over the edges that leave the node, so that folding never needs values. */
  readonly edges?: Readonly<Record<string, boolean>>;
  /** Where the node's outputs, the variable or the interrupt's `artifactData` stand, when not in the payload. */
  readonly value?: ValueRef;
  /** Inputs that may not stand in the log, by name. */
  readonly inputs?: Readonly<Record<string, ValueRef>>;
  /** How the channel is pruned when this write is folded. */
  readonly channel?: { readonly ttlMs?: number; readonly maxSize?: number };
  /** Whose vote it is, where the answer named somebody else than the principal who gave it. */
  readonly voter?: string;
};

/** A fact in the log, as the engine reads it. `at` is milliseconds since 1970. */
export type LoggedEvent<T extends EventType = EventType> = T extends EventType
  ? {
      readonly type: T;
      readonly payload: Payload<T>;
      readonly facts?: Facts;
      readonly causationId?: string;
      readonly untrusted?: boolean;
      readonly sequence: number;
      readonly at: number;
    }
  : never;

/** A fact before it has a place in the log. */
export type NewEvent<T extends EventType = EventType> = T extends EventType
  ? { readonly type: T; readonly payload: Payload<T>; readonly facts?: Facts; readonly causationId?: string; readonly untrusted?: boolean }
  : never;

export type NodeRun = {
  readonly status: 'running' | 'suspended' | 'retrying' | 'completed' | 'failed' | 'skipped';
  readonly startedAt: number;
  readonly attempt: number;
  /** When the next attempt may begin, while `retrying`. */
  readonly retryAt?: number;
  readonly outputs?: Stored;
  readonly error?: RunError;
};

export type Vote = { readonly voter: string; readonly action: string };

export type Interrupt = {
  readonly id: string;
  readonly nodeId: string;
  readonly kind: InterruptKind;
  readonly key: string;
  readonly data: JsonObject;
  /** `data.artifactData`, when it may not stand in the log. */
  readonly artifact?: ValueRef;
  readonly metadata?: JsonObject;
  readonly resumeSchema?: JsonObject;
  /** When nobody may answer any more. */
  readonly deadline?: number;
  readonly status: 'open' | 'resolved';
  readonly votes: readonly Vote[];
  readonly resumeValue?: Json;
  readonly resolvedBy?: string;
};

/** Where a run stands: the fold of its log and nothing else. */
export type RunState = {
  readonly runId: string;
  /** Whose id stands in ids that the log shows: the run's own, or of a fork that of the first source, so that forks are equal. */
  readonly idBase: string;
  readonly owner: Owner;
  readonly workflowId: string;
  readonly status: RunStatus;
  /** Sequence of the newest event; -1 before the first. */
  readonly head: number;
  readonly startedAt: number;
  readonly endedAt?: number;
  /** When it was paused; absent while it is not. */
  readonly pausedAt?: number;
  readonly inputs: JsonObject;
  /** Inputs that are shown masked: where the values stand. */
  readonly inputRefs: Readonly<Record<string, ValueRef>>;
  readonly channels: ReadonlyMap<string, Channel>;
  /** Runs that nodes started, by id: which node, and how they ended as far as the log knows. */
  readonly children: ReadonlyMap<string, Child>;
  readonly variables: ReadonlyMap<string, Stored>;
  readonly nodes: ReadonlyMap<string, NodeRun>;
  readonly edges: ReadonlyMap<string, boolean>;
  readonly interrupts: ReadonlyMap<string, Interrupt>;
  /** Calls of remote tools that were announced, by callId. */
  readonly calls: ReadonlySet<string>;
  /** Nodes that were begun, for the ceiling. */
  readonly executions: number;
  readonly error?: RunError;
  readonly reason?: string;
};

export type Child = { readonly nodeId: string; readonly workflowId: string; readonly status: string };

export const initial = (runId: string, idBase = runId): RunState => ({
  runId,
  idBase,
  owner: { tenant: '' },
  workflowId: '',
  status: 'pending',
  head: -1,
  startedAt: 0,
  inputs: {},
  inputRefs: {},
  channels: new Map(),
  children: new Map(),
  variables: new Map(),
  nodes: new Map(),
  edges: new Map(),
  interrupts: new Map(),
  calls: new Set(),
  executions: 0,
});

export const openInterrupts = (state: RunState): readonly Interrupt[] =>
  [...state.interrupts.values()].filter(({ status }) => status === 'open');
