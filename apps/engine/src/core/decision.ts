import type { Json, Payload, RunError, WopError, InterruptRequest, DrainPolicy } from '@isthmus/protocol';
import type { NewEvent, Stored, ValueRef } from './state.js';

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

/** What authz knows of whoever answers, at the time of the answer. A token stands for one interrupt and has no roles. */
export type Answerer = {
  readonly principal: string;
  readonly roles?: readonly string[];
  readonly groups?: readonly string[];
  readonly byToken?: boolean;
};

export type Target = { readonly nodeId: string } | { readonly interruptId: string };

export type Wish =
  | {
      readonly type: 'start';
      readonly started: Omit<Payload<'run.started'>, 'engineVersion' | 'activityIdentityRecipe'>;
      readonly inputRefs?: Readonly<Record<string, ValueRef>>;
    }
  /** What follows from where the run stands, with nothing executed: a run whose first nodes are all disabled has no other wish. */
  | { readonly type: 'proceed' }
  | { readonly type: 'begin'; readonly nodeId: string; readonly maxExecutions: number }
  /** A fact that must be durable before its effect: a call that goes out, a child that is started. */
  | { readonly type: 'announce'; readonly event: NewEvent<'agent.toolCalled'> | NewEvent<'node.dispatched'> }
  | { readonly type: 'report'; readonly nodeId: string; readonly outcome: Outcome; readonly edges: Readonly<Record<string, boolean>> }
  | { readonly type: 'resolve'; readonly target: Target; readonly resumeValue: Json; readonly by: Answerer }
  | { readonly type: 'timeout'; readonly interruptId: string }
  | { readonly type: 'pause'; readonly drainPolicy: DrainPolicy; readonly reason?: string; readonly by: string }
  | { readonly type: 'resume'; readonly reason?: string; readonly by: string }
  | { readonly type: 'cancel'; readonly reason?: string; readonly by: string; readonly parentRunId?: string }
  | { readonly type: 'expire'; readonly limitMs: number; readonly observedMs: number }
  | { readonly type: 'poison'; readonly takeovers: number }
  /** Facts of the source, in a replay: what people answered, what diverged. */
  | { readonly type: 'recorded'; readonly events: readonly NewEvent[] };
/** A wish put to a run, with the time it is put. */
export type Command = Wish & { readonly at: number };
export type CommandOf<T extends Command['type']> = Extract<Command, { type: T }>;

export type Decision =
  | { readonly is: 'events'; readonly events: readonly NewEvent[] }
  | { readonly is: 'rejected'; readonly error: WopError };

export const NOTHING: Decision = { is: 'events', events: [] };
export const events = (...list: NewEvent[]): Decision => ({ is: 'events', events: list });
export const rejected = (error: WopError): Decision => ({ is: 'rejected', error });
