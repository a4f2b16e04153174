import type { ChannelDeclaration, InterruptRequest, Json, JsonObject, RunError, RunStatus, ToolReply } from '@isthmus/protocol';
import type { z } from 'zod';
import type { NewEvent } from '../core/state.js';

/** What executing a node came to, before the driver decides where its values may stand. */
export type Result =
  | {
      readonly is: 'completed';
      readonly outputs: JsonObject;
      readonly untrusted?: boolean;
      readonly secret?: boolean;
      readonly sets?: readonly { readonly name: string; readonly value: Json }[];
      readonly writes?: readonly ChannelWrite[];
      readonly before?: readonly NewEvent[];
    }
  | { readonly is: 'failed'; readonly error: RunError; readonly before?: readonly NewEvent[] }
  /** Waits for people. `artifact` may hold untrusted content, so it is kept out of the log when the inputs were. */
  | {
      readonly is: 'suspended';
      readonly requests: readonly { readonly request: InterruptRequest; readonly artifact?: Json; readonly untrusted?: boolean }[];
    }
  /** Nothing to do before `until` (milliseconds since 1970). Derived from recorded times, so it needs no record itself. */
  | { readonly is: 'asleep'; readonly until: number }
  /** Waits for a run it started; that run's end wakes this one. */
  | { readonly is: 'awaiting'; readonly childRunId: string };

export type ChannelWrite = { readonly channel: string; readonly value: Json; readonly reducer: string; readonly ttlMs?: number };

/**
 * All a node sees of the world. A node may be entered again from its start, after a crash or an answer: what it reads here
 * was recorded, so it comes to the same result.
 */
export type NodeContext = {
  readonly nodeId: string;
  readonly nodeName: string;
  /** When the node began, as recorded. */
  readonly startedAt: number;
  readonly now: number;
  /** Does the graph route on what this node yields? Then a "no" is an output, not a failure. */
  readonly isRouted: boolean;
  /** Is any input content of a remote tool? */
  readonly untrusted: boolean;
  readonly typeId: string;
  /** What the workflow declares of a channel. */
  channel(name: string): ChannelDeclaration | undefined;
  variable(name: string): Json | undefined;
  /** What the variable carries along. */
  variableTaint(name: string): { readonly untrusted: boolean; readonly secret: boolean };
  readonly configurable: JsonObject;
  /** How the interrupt with this key was answered; undefined while it was not. */
  answer(key: string): Json | undefined;
};

/** How a run that a node started stands. */
export type ChildRun = { readonly runId: string; readonly status: RunStatus; readonly variables: JsonObject; readonly error?: RunError };

export type EffectContext = NodeContext & {
  /**
   * Starts the node's child run, or finds the one it has started: its id comes from the run and the node.
   * @throws WopError unknown_child_workflow
   */
  startChild(child: { readonly workflowId: string; readonly inputs: JsonObject; readonly propagate: boolean }): Promise<ChildRun>;
  /** Announces one logical call of a remote tool. Its id is the same whenever the node is entered again. */
  callTool(call: {
    readonly serverId: string;
    readonly toolName: string;
    readonly args: JsonObject;
    readonly timeoutMs: number;
  }): Promise<ToolCall>;
};

/** One initial request and its retries are one logical invocation. (mcp-integration.md, MRTR) */
export type ToolCall = {
  readonly callId: string;
  /** A round that was recorded is read back and not sent again. @throws WopError when it failed */
  round(
    number: number,
    retry?: { readonly requestState?: string; readonly inputResponses: Readonly<Record<string, JsonObject>> },
  ): Promise<ToolReply>;
  /** The event that closes the pair. */
  returned(result: {
    readonly status: 'ok' | 'error' | 'forbidden' | 'rate_limited';
    readonly value?: Json;
    readonly isError?: boolean;
    readonly negotiatedVersion?: string;
    readonly error?: RunError;
  }): NewEvent;
};

type Common = {
  /** As a pack manifest has it: `side-effect` is what replay suppression keys on. */
  readonly role: 'pure' | 'control' | 'side-effect';
  readonly config: z.ZodType;
  readonly inputs?: z.ZodType;
  /** A capability the node needs; where the host lacks it the node fails and is not executed. (wire §3.5) */
  readonly requires?: string;
};
export type PureNode<C = never, I = never> = Common & { readonly runs: 'at once'; run(context: NodeContext, config: C, inputs: I): Result };
export type EffectNode<C = never, I = never> = Common & {
  readonly runs: 'outside';
  run(context: EffectContext, config: C, inputs: I): Promise<Result>;
};
export type NodeType = PureNode | EffectNode;

/** A node type whose config and inputs are typed by their schemas. */
export const pureNode = <C extends z.ZodType, I extends z.ZodType = z.ZodType<JsonObject>>(type: {
  role: Common['role'];
  config: C;
  inputs?: I;
  requires?: string;
  run(context: NodeContext, config: z.output<C>, inputs: z.output<I>): Result;
}): NodeType => ({ ...type, runs: 'at once' }) as unknown as NodeType;

export const effectNode = <C extends z.ZodType, I extends z.ZodType = z.ZodType<JsonObject>>(type: {
  role: Common['role'];
  config: C;
  inputs?: I;
  run(context: EffectContext, config: z.output<C>, inputs: z.output<I>): Promise<Result>;
}): NodeType => ({ ...type, runs: 'outside' }) as unknown as NodeType;

export const failed = (code: string, message: string, before?: readonly NewEvent[]): Result => ({
  is: 'failed',
  error: { code, message },
  ...(before && { before }),
});

/** A failure that trying again cannot mend: a wrong definition, a person's no. */
export const failedForGood = (code: string, message: string): Result => ({ is: 'failed', error: { code, message, retryable: false } });
