import { type Json, type JsonObject, type ToolReply, WopError } from '@isthmus/protocol';
import type { NewEvent } from '../core/state.js';
import { nodeType } from './index.js';
import type { ChildRun, EffectContext, Result, ToolCall } from './node-type.js';

export const BEGAN = 1_000_000;

/** A remote tool, and the record that the driver keeps of it: a round that was recorded is read back, not sent again. */
export class FakeTool {
  readonly sent: { round: number; retry: unknown }[] = [];
  readonly begun: object[] = [];
  private readonly recorded = new Map<number, ToolReply | WopError>();

  constructor(private readonly reply: (round: number, retry: Parameters<ToolCall['round']>[1]) => ToolReply | WopError | Error) {}

  readonly callTool: EffectContext['callTool'] = async (call) => {
    this.begun.push(call);
    return {
      callId: 'n:0',
      round: async (round, retry) => {
        const known = this.recorded.get(round) ?? this.send(round, retry);
        if (known instanceof Error) throw known;
        return known;
      },
      returned: (result) => ({ type: 'agent.toolReturned', payload: result }) as unknown as NewEvent,
    };
  };

  private send(round: number, retry: Parameters<ToolCall['round']>[1]): ToolReply | Error {
    this.sent.push({ round, retry });
    const reply = this.reply(round, retry);
    if (!(reply instanceof Error) || reply instanceof WopError) this.recorded.set(round, reply);
    return reply;
  }
}

export type Entering = {
  readonly config?: JsonObject;
  readonly inputs?: JsonObject;
  /** How interrupts were answered, by key. */
  readonly answers?: Readonly<Record<string, Json>>;
  readonly now?: number;
  readonly isRouted?: boolean;
  readonly untrusted?: boolean;
  readonly tool?: FakeTool;
  readonly channels?: Readonly<Record<string, NonNullable<ReturnType<EffectContext['channel']>>>>;
  readonly variables?: Readonly<Record<string, Json>>;
  /** Do the variables come from outside and carry secrets? */
  readonly variableTaint?: ReturnType<EffectContext['variableTaint']>;
  /** How the run that the node starts stands. */
  readonly child?: Omit<ChildRun, 'runId'>;
};

/** Enters node `n` of a type from its start, with config and inputs parsed as the driver does. Answers what is wrong with them instead. */
export async function enter(typeId: string, entering: Entering = {}): Promise<Result | { is: 'invalid'; path: string }> {
  const type = nodeType(typeId);
  if (!type) throw new Error(`no node type ${typeId}`);
  const { config = {}, inputs = {}, answers = {}, now = BEGAN, isRouted = false, untrusted = false, tool, child } = entering;
  const parsed = [type.config.safeParse(config), type.inputs ? type.inputs.safeParse(inputs) : { success: true as const, data: inputs }];
  for (const result of parsed) if (!result.success) return { is: 'invalid', path: result.error.issues[0]?.path.join('.') ?? '' };
  const context: EffectContext = {
    nodeId: 'n',
    nodeName: 'The node',
    typeId,
    startedAt: BEGAN,
    now,
    isRouted,
    untrusted,
    channel: (name) => entering.channels?.[name],
    variable: (name) => entering.variables?.[name],
    variableTaint: () => entering.variableTaint ?? { untrusted: false, secret: false },
    configurable: {},
    startChild: () => (child ? Promise.resolve({ runId: 'child', ...child }) : Promise.reject(new Error('this node starts no run'))),
    answer: (key) => (Object.hasOwn(answers, key) ? answers[key] : undefined),
    callTool: tool?.callTool ?? (() => Promise.reject(new Error('this node calls no tool'))),
  };
  const [c, i] = parsed.map((result) => result.data) as [never, never];
  return type.runs === 'outside' ? type.run(context, c, i) : type.run(context, c, i);
}
