import { Clock, Logger, runInContext, withSpan } from '@isthmus/chassis';
import { BELLS, isTerminal, type Json, type JsonObject, type RunOutcome } from '@isthmus/protocol';
import type { Bell } from '@isthmus/messaging';
import { Batch } from '../core/batch.js';
import { test } from '../core/conditions.js';
import type { Command, Outcome } from '../core/decide.js';
import { fold } from '../core/apply.js';
import type { Graph } from '../core/graph.js';
import { resolveInputs, scopeOf } from '../core/inputs.js';
import { type Effect, pending } from '../core/pending.js';
import { outcomeOf } from '../core/snapshot.js';
import type { RunState } from '../core/state.js';
import { nodeType } from '../nodes/index.js';
import type { EffectContext, NodeContext, NodeType, Result } from '../nodes/node-type.js';
import { refsOf, type RunLog, type RunRow } from '../store/run-log.js';
import { type DriverSettings, MAX_TAKEOVERS, NAP_MS, PASS_MS, PASS_NODES } from './settings.js';
import type { ToolCalls } from './tool-calls.js';
import { Values } from './values.js';

export type Held = {
  readonly run: RunRow;
  readonly graph: Graph;
  readonly state: RunState;
  readonly epoch: number;
  readonly takeovers: number /** Monotonic end of the lease. */;
  readonly leaseEnd: number;
};
export type DriveTools = {
  readonly log: RunLog;
  readonly calls: ToolCalls;
  readonly bell: Bell;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: DriverSettings;
};

type Report = Extract<Command, { type: 'report' }>;
type Step = 'again' | 'wait' | 'done';

/** A worker must stop this long before its lease ends. */
const LEASE_MARGIN_MS = 500;

/**
 * Drives one run while this process holds its lease: executes what is pending, appends batch by batch, and lets go when the
 * run has ended or only waits. It holds nothing that the log and the value store do not: another process can go on at any line.
 */
export class Drive {
  private state: RunState;
  private readonly values = new Values();
  private readonly inFlight = new Set<string>();
  private readonly asleep = new Map<string, number>();
  private readonly reports: Report[] = [];
  private readonly stop = new AbortController();
  private leaseEnd: number;
  private isStale = false;
  private turn: Promise<unknown> = Promise.resolve();
  private wake: () => void = () => undefined;
  private readonly watchers = new Set<(outcome: RunOutcome) => void>();

  constructor(
    private readonly held: Held,
    private readonly tools: DriveTools,
  ) {
    this.state = held.state;
    this.leaseEnd = held.leaseEnd;
  }

  get runId(): string {
    return this.held.run.runId;
  }
  get epoch(): number {
    return this.held.epoch;
  }

  get head(): number {
    return this.state.head;
  }
  get isOver(): boolean {
    return this.stop.signal.aborted;
  }

  /** The log may have grown by someone else's hand: look before going on. */
  poke(): void {
    this.isStale = true;
    this.wake();
  }

  renewed(leaseEnd: number): void {
    this.leaseEnd = leaseEnd;
  }

  /** Another process has the run by now: stop without another word. */
  lost(): void {
    this.stop.abort();
    this.wake();
  }

  /** Calls `on` once the run has ended or waits for the outside. */
  whenSettled(on: (outcome: RunOutcome) => void): () => void {
    this.watchers.add(on);
    return () => this.watchers.delete(on);
  }

  /** Resolves when this process has nothing more to do with the run. */
  async run(): Promise<void> {
    await runInContext(this.held.run.trace ?? {}, () =>
      withSpan('openwop.run.drive', { 'openwop.run_id': this.runId, 'openwop.workflow_id': this.held.run.workflowId }, () => this.loop()),
    );
  }

  private async loop(): Promise<void> {
    await this.loadValues();
    for (;;) {
      if (this.stop.signal.aborted) return;
      const step = await this.inTurn(() => this.pass());
      if (step === 'done') return;
      if (step === 'wait') await this.untilWoken();
    }
  }

  /** One pass: reports that came in, everything that runs at once, one append, then the launch of what goes outside. */
  private async pass(): Promise<Step> {
    if (this.isStale) await this.catchUp();
    if (this.isOver) return 'done';
    const { clock, settings } = this.tools;
    const now = clock.now();
    const batch = new Batch(this.held.graph, this.state);
    const taken = this.reports.splice(0);
    for (const report of taken) batch.add(report);
    this.overdue(batch, now);
    if (this.state.head === 0) batch.add({ type: 'proceed', at: now });
    const { launches, isExhausted } = this.runAtOnce(batch, now);
    const ended = isTerminal(batch.state.status);
    const isIdle = ended || (launches.length === 0 && this.inFlight.size === 0 && !isExhausted && !this.nap(now));
    const due = isIdle ? this.nextDue(batch.state) : new Date(now + settings.leaseMs);

    if (batch.events.length > 0) {
      const appended = await withSpan(
        'openwop.event.append',
        { 'openwop.run_id': this.runId, 'openwop.event_count': batch.events.length },
        () => this.append(batch, isIdle, ended, due, now),
      );
      if (appended === 'conflict') {
        this.reports.unshift(...taken);
        this.isStale = true;
        return 'again';
      }
      if (appended === 'fenced') {
        this.lost();
        return 'done';
      }
    } else if (isIdle && !ended && !(await this.release(due))) return 'again';

    this.settled();
    if (ended) this.stop.abort();
    if (isIdle) return 'done';
    for (const effect of launches) this.launch(effect.nodeId);
    return isExhausted || this.reports.length > 0 ? 'again' : 'wait';
  }

  private overdue(batch: Batch, now: number): void {
    const limitMs = this.durationLimit();
    if (now - batch.state.startedAt > limitMs) batch.add({ type: 'expire', limitMs, observedMs: now - batch.state.startedAt, at: now });
    if (this.held.takeovers >= MAX_TAKEOVERS && batch.events.length === 0 && this.state.head === this.held.state.head)
      batch.add({ type: 'poison', takeovers: this.held.takeovers, at: now });
  }

  /** Nodes that need no commit between them, round after round, until none is ready or the pass has had its time. */
  private runAtOnce(batch: Batch, now: number): { launches: Effect[]; isExhausted: boolean } {
    const { clock } = this.tools;
    const started = clock.monotonic();
    const launches: Effect[] = [];
    const seen = new Set<string>();
    for (let executed = 0; ; ) {
      const ready = pending(this.held.graph, batch.state).filter(
        ({ nodeId }) => !seen.has(nodeId) && !this.inFlight.has(nodeId) && (this.asleep.get(nodeId) ?? 0) <= now,
      );
      if (ready.length === 0) return { launches, isExhausted: false };
      for (const effect of ready) {
        const isLate = executed > 0 && clock.monotonic() - started > PASS_MS;
        if (executed >= PASS_NODES || isLate) return { launches, isExhausted: true };
        if (effect.is === 'begin') batch.add({ type: 'begin', nodeId: effect.nodeId, maxExecutions: this.executionLimit(), at: now });
        if (isTerminal(batch.state.status)) return { launches: [], isExhausted: false };
        seen.add(effect.nodeId);
        executed += 1;
        const type = this.typeOf(effect.nodeId);
        if (type?.runs === 'outside') launches.push(effect);
        else this.execute(batch, effect.nodeId, type, now);
        if (isTerminal(batch.state.status)) return { launches: [], isExhausted: false };
      }
    }
  }

  private execute(batch: Batch, nodeId: string, type: NodeType | undefined, now: number): void {
    const prepared = this.prepare(batch.state, nodeId, type, now);
    if (prepared.is === 'failed') {
      this.report(batch, nodeId, prepared, now);
      return;
    }
    const result = (type as { run(context: NodeContext, config: unknown, inputs: unknown): Result }).run(
      prepared.context,
      prepared.config,
      prepared.inputs,
    );
    if (result.is === 'asleep') {
      this.asleep.set(nodeId, result.until);
      return;
    }
    this.asleep.delete(nodeId);
    this.report(batch, nodeId, result, now);
  }

  private report(batch: Batch, nodeId: string, result: Exclude<Result, { is: 'asleep' }>, at: number): void {
    batch.add(this.reportOf(batch.state, nodeId, result, at));
  }

  /** Starts what goes outside; its outcome comes back as a report. */
  private launch(nodeId: string): void {
    this.inFlight.add(nodeId);
    void this.outside(nodeId)
      .then((report) => {
        if (report) this.reports.push(report);
      })
      .catch((error: unknown) => {
        // The lease is gone, or the run has ended: whoever has it now enters the node again.
        if (!this.stop.signal.aborted)
          this.tools.logger.warn('a node was given up here and will be entered again', { runId: this.runId, nodeId, error });
        this.lost();
      })
      .finally(() => {
        this.inFlight.delete(nodeId);
        this.wake();
      });
  }

  private async outside(nodeId: string): Promise<Report | undefined> {
    const type = this.typeOf(nodeId);
    const now = this.tools.clock.now();
    const prepared = this.prepare(this.state, nodeId, type, now);
    if (prepared.is === 'failed') return this.reportOf(this.state, nodeId, prepared, now);
    const result = await withSpan(
      `openwop.node.${this.held.graph.nodes.get(nodeId)?.typeId}`,
      {
        'openwop.run_id': this.runId,
        'openwop.node_id': nodeId,
        'openwop.node_type': this.held.graph.nodes.get(nodeId)?.typeId ?? '',
        'openwop.node_attempt': 0,
      },
      () =>
        (type as { run(context: EffectContext, config: unknown, inputs: unknown): Promise<Result> }).run(
          this.effectContext(prepared.context),
          prepared.config,
          prepared.inputs,
        ),
    );
    if (result.is === 'asleep' || this.stop.signal.aborted) return undefined;
    return this.reportOf(this.state, nodeId, result, this.tools.clock.now());
  }

  private effectContext(context: NodeContext): EffectContext {
    let ordinal = 0;
    const { run } = this.held;
    const calling = {
      tenant: run.tenant,
      workspace: run.workspace,
      principal: run.principal,
      runId: this.runId,
      epoch: this.epoch,
      signal: this.stop.signal,
      leaseLeft: () => this.leaseEnd - LEASE_MARGIN_MS - this.tools.clock.monotonic(),
      announce: (event: Extract<Command, { type: 'announce' }>['event']) => this.announce(event),
    };
    return {
      ...context,
      callTool: (call) => {
        const mine = ordinal;
        ordinal += 1;
        return this.tools.calls.begin(calling, this.state, { nodeId: context.nodeId, ordinal: mine, ...call });
      },
    };
  }

  /** Appends outside of a pass: the announcement is durable before the call goes out. */
  private announce(event: Extract<Command, { type: 'announce' }>['event']): Promise<void> {
    return this.inTurn(() => this.appendAnnouncement(event));
  }

  /** One after the other: folding and appending read the state, wait, and write it. */
  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.turn.then(work, work);
    this.turn = mine.catch(() => undefined);
    return mine;
  }

  private async appendAnnouncement(event: Extract<Command, { type: 'announce' }>['event']): Promise<void> {
    for (;;) {
      if (this.isStale) await this.catchUp();
      if (this.stop.signal.aborted) throw new Error('the lease is gone');
      const now = this.tools.clock.now();
      const batch = new Batch(this.held.graph, this.state);
      batch.add({ type: 'announce', event, at: now });
      if (isTerminal(batch.state.status)) throw new Error('the run has ended');
      if (batch.events.length === 0) return;
      const appended = await this.append(batch, false, false, new Date(now + this.tools.settings.leaseMs), now);
      if (appended === 'ok') return;
      if (appended === 'fenced') {
        this.lost();
        throw new Error('the lease is gone');
      }
      this.isStale = true;
    }
  }

  private prepare(
    state: RunState,
    nodeId: string,
    type: NodeType | undefined,
    now: number,
  ): { is: 'ready'; context: NodeContext; config: unknown; inputs: unknown } | Extract<Result, { is: 'failed' }> {
    const { graph } = this.held;
    const node = graph.nodes.get(nodeId);
    if (!node || !type)
      return {
        is: 'failed',
        error: { code: 'capability_not_provided', message: `This host has no node type "${node?.typeId}" (node "${nodeId}").` },
      };
    const resolved = resolveInputs(graph, state, node, this.values.read);
    if (resolved.is === 'error') return { is: 'failed', error: { code: resolved.code, message: resolved.message } };
    const config = type.config.safeParse(node.config);
    const inputs = type.inputs ? type.inputs.safeParse(resolved.inputs) : { success: true as const, data: resolved.inputs };
    const problem = config.success ? (inputs.success ? undefined : inputs.error) : config.error;
    if (problem) {
      const [issue] = problem.issues;
      return {
        is: 'failed',
        error: {
          code: 'validation_error',
          message: `The ${config.success ? 'inputs' : 'config'} of node "${nodeId}" are not valid at "${issue?.path.map(String).join('.')}": ${issue?.message}.`,
        },
      };
    }
    const context: NodeContext = {
      nodeId,
      nodeName: node.name ?? nodeId,
      startedAt: state.nodes.get(nodeId)?.startedAt ?? now,
      now,
      isRouted: (graph.outgoing.get(nodeId) ?? []).some(({ condition }) => condition !== undefined),
      untrusted: resolved.untrusted,
      answer: (key) =>
        [...state.interrupts.values()].find((interrupt) => interrupt.key === key && interrupt.status === 'resolved')?.resumeValue,
    };
    return { is: 'ready', context, config: config.data, inputs: inputs.data };
  }

  /** Decides where values may stand, and which edges are taken, while the values are at hand. */
  private reportOf(state: RunState, nodeId: string, result: Exclude<Result, { is: 'asleep' }>, at: number): Report {
    const outcome = this.outcomeOf(nodeId, result);
    if (outcome.is === 'suspended') return { type: 'report', nodeId, outcome, edges: {}, at };
    const output: Json = outcome.is === 'completed' ? this.values.read(outcome.outputs) : { error: outcome.error as unknown as JsonObject };
    // Ids of edges come from authors: none of them is the prototype.
    const edges: Record<string, boolean> = Object.create(null) as Record<string, boolean>;
    for (const edge of this.held.graph.outgoing.get(nodeId) ?? []) {
      if (!edge.condition) continue;
      const { variables, inputs } = scopeOf(state, this.values.read);
      const seen =
        outcome.is === 'completed'
          ? { ...variables, ...Object.fromEntries((outcome.sets ?? []).map(({ name, next }) => [name, this.values.read(next)])) }
          : variables;
      const verdict = test(edge.condition, { status: outcome.is, output, variables: seen, inputs });
      if (verdict.is === 'error') {
        const error = {
          code: 'expression_failed',
          message: `The condition of edge "${edge.id}" could not be evaluated: ${verdict.message}`,
        };
        return {
          type: 'report',
          nodeId,
          outcome: { is: 'failed', error, ...(outcome.before && { before: outcome.before }) },
          edges: {},
          at,
        };
      }
      edges[edge.id] = verdict.taken;
    }
    return { type: 'report', nodeId, outcome, edges, at };
  }

  private outcomeOf(nodeId: string, result: Exclude<Result, { is: 'asleep' }>): Outcome {
    if (result.is === 'failed') return result;
    if (result.is === 'suspended') {
      const requests = result.requests.map(({ request, artifact, untrusted = false }) => {
        if (artifact === undefined) return { request, untrusted };
        const kept = this.values.keep(`interrupt:${request.key}`, artifact, untrusted);
        return kept.is === 'ref'
          ? { request, artifact: kept, untrusted }
          : { request: { ...request, data: { ...request.data, artifactData: kept.value } }, untrusted };
      });
      return { is: 'suspended', requests };
    }
    const { outputs, untrusted = false, sets, before } = result;
    return {
      is: 'completed',
      outputs: this.values.keep(`node:${nodeId}`, outputs, untrusted),
      ...(sets && {
        sets: sets.map(({ name, value }) => ({ name, next: this.values.keep(`variable:${nodeId}/${name}`, value, untrusted) })),
      }),
      ...(before && { before }),
    };
  }

  private async append(
    batch: Batch,
    release: boolean,
    ended: boolean,
    due: Date | null,
    now: number,
  ): Promise<'ok' | 'conflict' | 'fenced'> {
    const { log, bell, settings } = this.tools;
    const values = this.values.freshOf(batch.events.flatMap(({ facts }) => facts?.value?.ref ?? []));
    const appended = await log.append({
      tenant: this.held.run.tenant,
      runId: this.runId,
      expected: this.state.head,
      epoch: this.epoch,
      owner: settings.instance,
      at: new Date(now),
      events: batch.events,
      status: batch.state.status,
      ended,
      release,
      due,
      values,
    });
    if (appended.is === 'fenced') return 'fenced';
    if (appended.is !== 'ok') return 'conflict';
    this.values.written(values);
    this.state = batch.state;
    bell.ring(BELLS.run.subject(this.runId));
    return 'ok';
  }

  /** Gives the lease back, unless the log grew since: what grew may be work. */
  private async release(due: Date | null): Promise<boolean> {
    const released = await this.tools.log.release(this.held.run.tenant, this.runId, this.epoch, this.state.head, due);
    if (!released) this.isStale = true;
    return released;
  }

  /** For a process that ends: lets go, and says that someone should look at once. */
  async handBack(): Promise<void> {
    this.lost();
    await this.tools.log.release(this.held.run.tenant, this.runId, this.epoch, this.state.head, this.tools.clock.date());
  }

  /** Folds what others appended: a cancel, an answer. */
  private async catchUp(): Promise<void> {
    this.isStale = false;
    const page = await this.tools.log.read(this.held.run.tenant, null, this.runId, this.state.head + 1);
    if (page?.run.epoch !== this.epoch) return this.lost();
    this.state = fold(this.state, page.events);
    await this.loadValues();
    if (isTerminal(this.state.status)) {
      this.settled();
      this.lost();
    }
  }

  private async loadValues(): Promise<void> {
    const missing = refsOf(this.state).filter((ref) => !this.values.has(ref));
    if (missing.length > 0) this.values.learn(await this.tools.log.values(this.held.run.tenant, this.runId, missing));
  }

  private settled(): void {
    if (this.watchers.size === 0) return;
    const outcome = outcomeOf(this.held.graph, this.state, this.values.read);
    if (outcome.is === 'working') return;
    for (const watcher of this.watchers) watcher(outcome);
    this.watchers.clear();
  }

  private async untilWoken(): Promise<void> {
    if (this.isStale || this.reports.length > 0 || this.stop.signal.aborted) return;
    const next = Math.min(...this.asleep.values(), this.state.startedAt + this.durationLimit() + 1);
    const timeout = Math.max(0, Math.min(next - this.tools.clock.now(), 60_000));
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeout);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wake = () => undefined;
  }

  /** Is the next sleeper due so soon that giving the lease back would cost more than keeping it? */
  private nap(now: number): boolean {
    return this.asleep.size > 0 && Math.min(...this.asleep.values()) - now <= NAP_MS;
  }

  private nextDue(state: RunState): Date | null {
    if (isTerminal(state.status)) return null;
    return new Date(Math.min(...this.asleep.values(), state.startedAt + this.durationLimit() + 1));
  }

  private executionLimit(): number {
    const asked = this.held.run.options.configurable?.['recursionLimit'];
    return Math.min(typeof asked === 'number' ? asked : Number.POSITIVE_INFINITY, this.tools.settings.maxNodeExecutions);
  }

  private durationLimit(): number {
    const asked = this.held.run.options.configurable?.['runTimeoutMs'];
    const own = this.held.graph.definition.settings.timeout;
    const limits = [
      this.tools.settings.maxRunDurationMs,
      ...(typeof asked === 'number' ? [asked] : []),
      ...(typeof own === 'number' && own > 0 ? [own] : []),
    ];
    return Math.min(...limits);
  }

  private typeOf(nodeId: string): NodeType | undefined {
    return nodeType(this.held.graph.nodes.get(nodeId)?.typeId ?? '');
  }
}
