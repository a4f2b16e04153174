import type { Json, JsonObject } from '@isthmus/protocol';
import { test } from '../core/conditions.js';
import type { CommandOf, Outcome } from '../core/decision.js';
import type { Graph } from '../core/graph.js';
import { resolveInputs, scopeOf, type Taint } from '../core/inputs.js';
import type { NewEvent, RunState, Stored } from '../core/state.js';
import { isoTime } from '@isthmus/protocol';
import { nodeType } from '../nodes/index.js';
import type { ChannelWrite, EffectContext, NodeContext, NodeType, Result } from '../nodes/node-type.js';
import type { RunRow } from '../store/run-log.js';
import type { Values } from './values.js';

export type Report = CommandOf<'report'>;
/** Something to tell the run; the others only wait. */
export type Told = Exclude<Result, { is: 'asleep' } | { is: 'awaiting' }>;
export type Ready = {
  readonly is: 'ready';
  readonly type: NodeType;
  readonly context: NodeContext;
  readonly config: unknown;
  readonly inputs: unknown;
  readonly taint: Taint;
};
type Failed = Extract<Result, { is: 'failed' }>;

/**
 * Runs nodes over a run's state and values: what a node is given, and what its result means for the log. Where values may
 * stand and which edges are taken is decided here, while the values are at hand.
 */
export class NodeRunner {
  constructor(
    private readonly graph: Graph,
    private readonly run: Pick<RunRow, 'options'>,
    private readonly values: Values,
  ) {}

  /** Inputs and config, resolved and checked, or why the node cannot run. */
  prepare(state: RunState, nodeId: string, now: number): Ready | Failed {
    const node = this.graph.nodes.get(nodeId);
    const type = nodeType(node?.typeId ?? '');
    if (!node || !type) return final('capability_not_provided', `This host has no node type "${node?.typeId}" (node "${nodeId}").`);
    if (type.requires)
      return final(
        'capability_not_provided',
        `Node "${nodeId}" (${node.typeId}) needs the capability "${type.requires}", which this host does not provide.`,
      );
    const resolved = resolveInputs(this.graph, state, node, this.values.read);
    if (resolved.is === 'error') return final(resolved.code, resolved.message);
    const config = type.config.safeParse(node.config);
    const inputs = type.inputs ? type.inputs.safeParse(resolved.inputs) : { success: true as const, data: resolved.inputs };
    const problem = config.success ? (inputs.success ? undefined : inputs.error) : config.error;
    if (problem) {
      const [issue] = problem.issues;
      const what = config.success ? 'inputs' : 'config';
      return final(
        'validation_error',
        `The ${what} of node "${nodeId}" are not valid at "${issue?.path.map(String).join('.')}": ${issue?.message}.`,
      );
    }
    const context: NodeContext = {
      nodeId,
      typeId: node.typeId,
      nodeName: node.name ?? nodeId,
      startedAt: state.nodes.get(nodeId)?.startedAt ?? now,
      now,
      isRouted: (this.graph.outgoing.get(nodeId) ?? []).some(({ condition }) => condition !== undefined),
      untrusted: resolved.taint.untrusted,
      configurable: this.run.options.configurable ?? {},
      channel: (name) => (Object.hasOwn(this.graph.definition.channels ?? {}, name) ? this.graph.definition.channels?.[name] : undefined),
      variable: (name) => {
        const stored = state.variables.get(name);
        return stored && this.values.read(stored);
      },
      variableTaint: (name) => {
        const stored = state.variables.get(name);
        return stored?.is === 'ref' ? { untrusted: stored.untrusted, secret: stored.secret === true } : { untrusted: false, secret: false };
      },
      answer: (key) => [...state.interrupts.values()].find((one) => one.key === key && one.status === 'resolved')?.resumeValue,
    };
    return { is: 'ready', type, context, config: config.data, inputs: inputs.data, taint: resolved.taint };
  }

  /** A node that needs no commit before it. */
  runAtOnce({ type, context, config, inputs }: Ready): Result {
    return (type as { run(context: NodeContext, config: unknown, inputs: unknown): Result }).run(context, config, inputs);
  }

  runOutside({ type, config, inputs }: Ready, context: EffectContext): Promise<Result> {
    return (type as { run(context: EffectContext, config: unknown, inputs: unknown): Promise<Result> }).run(context, config, inputs);
  }

  report(state: RunState, nodeId: string, result: Told, at: number, taint: Taint): Report {
    const outcome = this.outcomeOf(state, nodeId, result, at, taint);
    if (outcome.is === 'suspended') return { type: 'report', nodeId, outcome, edges: {}, at };
    const verdicts = this.verdicts(state, nodeId, outcome);
    if (typeof verdicts !== 'string') return { type: 'report', nodeId, outcome, edges: verdicts, at };
    const failed: Outcome = { ...final('expression_failed', verdicts), ...(outcome.before && { before: outcome.before }) };
    return { type: 'report', nodeId, outcome: failed, edges: {}, at };
  }

  /** Which of the edges that leave the node are taken; or what is wrong with a condition. */
  private verdicts(state: RunState, nodeId: string, outcome: Exclude<Outcome, { is: 'suspended' }>): Record<string, boolean> | string {
    const edges = (this.graph.outgoing.get(nodeId) ?? []).filter(({ condition }) => condition !== undefined);
    if (edges.length === 0) return {};
    const output: Json = outcome.is === 'completed' ? this.values.read(outcome.outputs) : { error: outcome.error as unknown as JsonObject };
    const { variables, inputs } = scopeOf(state, this.values.read);
    const sets = outcome.is === 'completed' ? (outcome.sets ?? []) : [];
    const seen = { ...variables, ...Object.fromEntries(sets.map(({ name, next }) => [name, this.values.read(next)])) };
    // Ids of edges come from authors: none of them is the prototype.
    const verdicts: Record<string, boolean> = Object.create(null) as Record<string, boolean>;
    for (const { id, condition } of edges) {
      const verdict = test(condition ?? {}, { status: outcome.is, output, variables: seen, inputs });
      if (verdict.is === 'error') return `The condition of edge "${id}" could not be evaluated: ${verdict.message}`;
      verdicts[id] = verdict.taken;
    }
    return verdicts;
  }

  private outcomeOf(state: RunState, nodeId: string, result: Told, at: number, { secret }: Taint): Outcome {
    if (result.is === 'failed') return result;
    if (result.is === 'suspended') {
      const requests = result.requests.map(({ request, artifact, untrusted = false }) => {
        if (artifact === undefined) return { request, untrusted };
        const kept = this.values.keep(`interrupt:${request.key}`, artifact, { untrusted, secret });
        return kept.is === 'ref'
          ? { request, artifact: kept, untrusted }
          : { request: { ...request, data: { ...request.data, artifactData: kept.value } }, untrusted };
      });
      return { is: 'suspended', requests };
    }
    const { outputs, untrusted = false, sets = [], writes = [], before = [] } = result;
    const isSecret = secret || result.secret === true;
    const attempt = state.nodes.get(nodeId)?.attempt ?? 0;
    const keep = (ref: string, value: Json): Stored =>
      this.values.keep(attempt > 0 ? `${ref}#${attempt}` : ref, value, { untrusted, secret: isSecret });
    const written = writes.map((write) => this.written(nodeId, write, at));
    return {
      is: 'completed',
      outputs: keep(`node:${nodeId}`, outputs),
      sets: sets.map(({ name, value }) => ({ name, next: keep(`variable:${nodeId}/${name}`, value) })),
      before: [...before, ...written],
    };
  }

  private written(nodeId: string, { channel, value, reducer, ttlMs }: ChannelWrite, at: number): NewEvent {
    const declared = this.graph.definition.channels?.[channel];
    const facts = { ...(ttlMs !== undefined && { ttlMs }), ...(declared?.maxSize !== undefined && { maxSize: declared.maxSize }) };
    return {
      type: 'channel.written',
      payload: {
        channel,
        value,
        reducer,
        writtenAt: isoTime(at),
        nodeId,
        ...(declared?.schemaVersion !== undefined && { schemaVersion: declared.schemaVersion }),
      },
      facts: { channel: facts },
    };
  }
}

/** A failure that trying again cannot mend. */
const final = (code: string, message: string): Failed => ({ is: 'failed', error: { code, message, retryable: false } });
