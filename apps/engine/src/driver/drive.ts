import { type Clock, type Logger, runInContext, withSpan } from '@isthmus/chassis';
import type { Bell } from '@isthmus/messaging';
import { BELLS, isTerminal, type RunOutcome } from '@isthmus/protocol';
import { fold } from '../core/apply.js';
import { Batch } from '../core/batch.js';
import type { CommandOf } from '../core/decision.js';
import type { Graph } from '../core/graph.js';
import { type Effect, pending } from '../core/pending.js';
import { PARENT_CANCELLED } from '../core/resolution.js';
import { outcomeOf } from '../core/snapshot.js';
import { openInterrupts, type RunState } from '../core/state.js';
import { nodeType } from '../nodes/index.js';
import type { EffectContext } from '../nodes/node-type.js';
import { refsOf, type RunLog, type RunRow } from '../store/run-log.js';
import type { ChildRuns } from './child-runs.js';
import { executionLimit, durationLimit } from './limits.js';
import { NodeRunner, type Ready, type Report } from './node-runner.js';
import { Recorded } from './recorded.js';
import type { Runs } from './runs.js';
import { type DriverSettings, MAX_TAKEOVERS, NAP_MS, PASS_MS, PASS_NODES } from './settings.js';
import type { ToolCalls } from './tool-calls.js';
import { Values } from './values.js';

export type Held = {
  readonly run: RunRow;
  readonly graph: Graph;
  readonly state: RunState;
  readonly epoch: number;
  readonly takeovers: number;
  /** Monotonic end of the lease. */
  readonly leaseEnd: number;
};
export type DriveTools = {
  readonly log: RunLog;
  readonly calls: ToolCalls;
  readonly children: ChildRuns;
  readonly runs: Pick<Runs, 'lease' | 'start' | 'instance'>;
  readonly bell: Bell;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: DriverSettings;
};

/** One for all: without a reason every abort builds an error with a stack. */
const STOPPED = new Error('This process no longer drives the run.');

type Step = 'again' | 'wait' | 'done';
type Announcement = CommandOf<'announce'>['event'];

/** A worker must stop this long before its lease ends. */
const LEASE_MARGIN_MS = 500;
/** While a child runs its parent looks after it this often, for the bell may be lost. */
const CHILD_LOOK_MS = 2_000;

/**
 * Drives one run while this process holds its lease: executes what is pending, appends batch by batch, and lets go when the
 * run has ended or only waits. It holds nothing that the log and the value store do not: another process can go on at any line.
 */
export class Drive {
  private run: RunRow;
  private state: RunState;
  private recorded: Recorded | undefined;
  private readonly values = new Values();
  private readonly runner: NodeRunner;
  private readonly inFlight = new Set<string>();
  private readonly asleep = new Map<string, number>();
  private readonly reports: Report[] = [];
  private readonly stop = new AbortController();
  private leaseEnd: number;
  private isStale = false;
  /** How often it caught up with others: a child that ended while its parent looked at it must not be missed. */
  private looks = 0;
  private turn: Promise<unknown> = Promise.resolve();
  private wake: () => void = () => undefined;
  private readonly watchers = new Set<(outcome: RunOutcome) => void>();

  constructor(
    private readonly held: Held,
    private readonly tools: DriveTools,
  ) {
    this.run = held.run;
    this.state = held.state;
    this.leaseEnd = held.leaseEnd;
    this.runner = new NodeRunner(held.graph, held.run, this.values);
  }

  get runId(): string {
    return this.run.runId;
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

  /** The log, or what stands beside it, may have changed by someone else's hand: look before going on. */
  poke(): void {
    this.isStale = true;
    this.wake();
  }

  renewed(leaseEnd: number): void {
    this.leaseEnd = leaseEnd;
  }

  /** Another process has the run by now: stop without another word. */
  lost(): void {
    this.stop.abort(STOPPED);
    this.wake();
  }

  /** Calls `on` once the run has ended or waits for the outside. */
  whenSettled(on: (outcome: RunOutcome) => void): () => void {
    this.watchers.add(on);
    return () => this.watchers.delete(on);
  }

  /** Resolves when this process has nothing more to do with the run. */
  async drive(): Promise<void> {
    await runInContext(this.run.trace ?? {}, () =>
      withSpan('openwop.run.drive', { 'openwop.run_id': this.runId, 'openwop.workflow_id': this.run.workflowId }, () => this.loop()),
    );
  }

  private async loop(): Promise<void> {
    await this.load();
    for (;;) {
      if (this.stop.signal.aborted) return;
      const step = await this.inTurn(() => this.pass());
      if (step === 'done') return;
      if (step === 'wait') await this.untilWoken();
    }
  }

  /** One after the other: folding and appending read the state, wait, and write it. */
  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.turn.then(work, work);
    this.turn = mine.catch(() => undefined);
    return mine;
  }

  /** One pass: reports that came in, everything that runs at once, one append, then the launch of what goes outside. */
  private async pass(): Promise<Step> {
    if (this.isStale) await this.catchUp();
    if (this.isOver) return 'done';
    const now = this.tools.clock.now();
    const batch = new Batch(this.held.graph, this.state);
    const taken = this.reports.splice(0);
    for (const report of taken) batch.add(report);
    this.overdue(batch, now);
    if (this.state.head === 0) batch.add({ type: 'proceed', at: now });
    const { launches, isExhausted } = this.runAtOnce(batch, now);
    this.pauseIfDrained(batch, now);
    const ended = isTerminal(batch.state.status);
    const isPaused = batch.state.pausedAt !== undefined;
    const isIdle = ended || (launches.length === 0 && !isExhausted && (isPaused || (this.inFlight.size === 0 && !this.nap(now))));
    const due = isIdle ? this.nextDue(batch.state) : new Date(now + this.tools.settings.leaseMs);

    if (batch.events.length > 0) {
      const appended = await this.append(batch, isIdle, ended, due, now);
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
    if (ended || isPaused) this.stop.abort(STOPPED);
    if (isIdle) return 'done';
    for (const effect of launches) this.launch(effect.nodeId);
    return isExhausted || this.reports.length > 0 ? 'again' : 'wait';
  }

  /** What time, or the end of somebody else, does to the run. */
  private overdue(batch: Batch, now: number): void {
    const limitMs = durationLimit(this.run, this.held.graph, this.tools.settings);
    if (!this.recorded && now - batch.state.startedAt > limitMs)
      batch.add({ type: 'expire', limitMs, observedMs: now - batch.state.startedAt, at: now });
    for (const { id, deadline } of openInterrupts(batch.state)) {
      if (deadline !== undefined && deadline <= now) batch.add({ type: 'timeout', interruptId: id, at: now });
    }
    const { parentRun, isOrphaned } = this.run.family;
    if (isOrphaned && parentRun !== null)
      batch.add({ type: 'cancel', reason: PARENT_CANCELLED, by: 'core.system', parentRunId: parentRun, at: now });
    if (this.held.takeovers >= MAX_TAKEOVERS && batch.events.length === 0 && this.state.head === this.held.state.head)
      batch.add({ type: 'poison', takeovers: this.held.takeovers, at: now });
  }

  /** A pause was wished while nodes were executing: it becomes a fact when they have ended. */
  private pauseIfDrained(batch: Batch, now: number): void {
    const { pause } = this.run;
    const isBusy = this.inFlight.size > 0 || [...batch.state.nodes.values()].some(({ status }) => status === 'running');
    if (!pause || isBusy || isTerminal(batch.state.status) || batch.state.pausedAt !== undefined) return;
    batch.add({
      type: 'pause',
      drainPolicy: 'drain-current-node',
      by: pause.by,
      ...(pause.reason !== undefined && { reason: pause.reason }),
      at: now,
    });
  }

  /** Nodes that need no commit between them, round after round, until none is ready or the pass has had its time. */
  private runAtOnce(batch: Batch, now: number): { launches: Effect[]; isExhausted: boolean } {
    const { clock, settings } = this.tools;
    const started = clock.monotonic();
    const launches: Effect[] = [];
    const seen = new Set<string>();
    const maxExecutions = executionLimit(this.run, settings);
    for (let executed = 0; ; ) {
      // While a pause is wished, what has begun goes on and nothing else begins.
      const ready = this.ready(batch.state, now).filter(({ nodeId, is }) => !seen.has(nodeId) && !(this.run.pause && is === 'begin'));
      if (ready.length === 0) return { launches, isExhausted: false };
      for (const effect of ready) {
        const { nodeId } = effect;
        const isLate = executed > 0 && clock.monotonic() - started > PASS_MS;
        if (executed >= PASS_NODES || isLate) return { launches, isExhausted: true };
        if (effect.is === 'begin') batch.add({ type: 'begin', nodeId, maxExecutions, at: now });
        if (isTerminal(batch.state.status)) return { launches: [], isExhausted: false };
        executed += 1;
        if (nodeType(this.held.graph.nodes.get(nodeId)?.typeId ?? '')?.runs === 'outside' && !this.replayed(batch, nodeId, now)) {
          seen.add(nodeId);
          launches.push(effect);
        } else this.execute(batch, nodeId, now);
        if (isTerminal(batch.state.status)) return { launches: [], isExhausted: false };
      }
    }
  }

  private ready(state: RunState, now: number): readonly Effect[] {
    const isNow = (nodeId: string, notBefore = 0): boolean => Math.max(notBefore, this.asleep.get(nodeId) ?? 0) <= now;
    const owed = pending(this.held.graph, state).filter(({ nodeId }) => !this.inFlight.has(nodeId));
    // A retry that is not due yet is a sleeper like any other.
    for (const { nodeId, notBefore } of owed)
      if (notBefore !== undefined && notBefore > now && !this.recorded) this.asleep.set(nodeId, notBefore);
    return owed.filter(({ nodeId, notBefore }) => isNow(nodeId, this.recorded ? 0 : notBefore));
  }

  private execute(batch: Batch, nodeId: string, now: number): void {
    if (batch.state.nodes.get(nodeId)?.status !== 'running') return;
    // A replay does not wait: what was slept is in the past.
    const prepared = this.runner.prepare(batch.state, nodeId, this.recorded ? Number.MAX_SAFE_INTEGER : now);
    const result = prepared.is === 'failed' ? prepared : this.runner.runAtOnce(prepared);
    if (result.is === 'asleep') {
      this.asleep.set(nodeId, result.until);
      return;
    }
    this.asleep.delete(nodeId);
    if (result.is === 'awaiting') return;
    const taint = prepared.is === 'ready' ? prepared.taint : { untrusted: false, secret: false };
    batch.add(this.runner.report(batch.state, nodeId, result, now, taint));
    const answers = this.recorded?.answers(batch.state) ?? [];
    if (answers.length > 0) batch.add({ type: 'recorded', events: answers, at: now });
  }

  /** In a replay an effect comes to what was recorded, or fails closed: nobody is called. */
  private replayed(batch: Batch, nodeId: string, now: number): boolean {
    if (!this.recorded) return false;
    const attempt = batch.state.nodes.get(nodeId)?.attempt ?? 0;
    const known = this.recorded.outcome(nodeId, attempt);
    const missing = {
      code: 'replay_source_missing',
      message: `The source run recorded no outcome of node "${nodeId}", and a replay calls nobody.`,
      retryable: false,
    };
    batch.add(
      known
        ? { type: 'report', nodeId, ...known, at: now }
        : { type: 'report', nodeId, outcome: { is: 'failed', error: missing }, edges: {}, at: now },
    );
    return true;
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
    const { clock } = this.tools;
    const now = clock.now();
    const prepared = this.runner.prepare(this.state, nodeId, now);
    if (prepared.is === 'failed') return this.runner.report(this.state, nodeId, prepared, now, { untrusted: false, secret: false });
    const attempt = this.state.nodes.get(nodeId)?.attempt ?? 0;
    const { looks } = this;
    const { typeId } = prepared.context;
    const attributes = {
      'openwop.run_id': this.runId,
      'openwop.node_id': nodeId,
      'openwop.node_type': typeId,
      'openwop.node_attempt': attempt,
    };
    const result = await withSpan(`openwop.node.${typeId}`, attributes, () =>
      this.runner.runOutside(prepared, this.effectContext(prepared, attempt)),
    );
    if (this.stop.signal.aborted) return undefined;
    if (result.is === 'awaiting' || result.is === 'asleep') {
      const patience = looks === this.looks ? CHILD_LOOK_MS : 0;
      this.asleep.set(nodeId, result.is === 'asleep' ? result.until : clock.now() + patience);
      return undefined;
    }
    this.asleep.delete(nodeId);
    return this.runner.report(this.state, nodeId, result, clock.now(), prepared.taint);
  }

  private effectContext({ context }: Ready, attempt: number): EffectContext {
    const { nodeId } = context;
    const { tenant, workspace, principal } = this.run;
    let ordinal = 0;
    const acting = {
      tenant,
      workspace,
      principal,
      runId: this.runId,
      epoch: this.epoch,
      signal: this.stop.signal,
      leaseLeft: () => this.leaseEnd - LEASE_MARGIN_MS - this.tools.clock.monotonic(),
      announce: (event: Announcement) => this.inTurn(() => this.announce(event)),
    };
    return {
      ...context,
      callTool: (call) => {
        const mine = ordinal;
        ordinal += 1;
        return this.tools.calls.begin(acting, this.state, { nodeId, attempt, ordinal: mine, ...call });
      },
      startChild: (child) => this.tools.children.start(this.tools.runs, acting, this.run, { nodeId, attempt, ...child }),
    };
  }

  /** Appends outside of a pass: the announcement is durable before the effect. */
  private async announce(event: Announcement): Promise<void> {
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

  private append(batch: Batch, release: boolean, ended: boolean, due: Date | null, now: number): Promise<'ok' | 'conflict' | 'fenced'> {
    const { log, bell, settings } = this.tools;
    const attributes = { 'openwop.run_id': this.runId, 'openwop.event_count': batch.events.length };
    return withSpan('openwop.event.append', attributes, async () => {
      const values = this.values.freshOf(batch.events.flatMap(({ facts }) => facts?.value?.ref ?? []));
      const appended = await log.append({
        tenant: this.run.tenant,
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
      const { parentRun } = this.run.family;
      if (ended && parentRun !== null) bell.ring(BELLS.work.subject(parentRun));
      return 'ok';
    });
  }

  /** Gives the lease back, unless the log grew since: what grew may be work. */
  private async release(due: Date | null): Promise<boolean> {
    const released = await this.tools.log.release(this.run.tenant, this.runId, this.epoch, this.state.head, due);
    if (!released) this.isStale = true;
    return released;
  }

  /** For a process that ends: lets go, and says that someone should look at once. */
  async handBack(): Promise<void> {
    this.lost();
    await this.tools.log.release(this.run.tenant, this.runId, this.epoch, this.state.head, this.tools.clock.date());
  }

  /** Folds what others appended: a cancel, an answer. And looks at what stands beside the log: a pause, the end of the parent. */
  private async catchUp(): Promise<void> {
    this.isStale = false;
    this.looks += 1;
    const page = await this.tools.log.read(this.run.tenant, null, this.runId, this.state.head + 1);
    if (page?.run.epoch !== this.epoch) return this.lost();
    this.run = page.run;
    this.state = fold(this.state, page.events);
    // Whoever waits for a child looks at it now.
    for (const [nodeId] of this.asleep)
      if ([...this.state.children.values()].some((child) => child.nodeId === nodeId)) this.asleep.delete(nodeId);
    await this.loadValues();
    if (isTerminal(this.state.status)) {
      this.settled();
      this.lost();
    }
  }

  private async load(): Promise<void> {
    await this.loadValues();
    const { mode, sourceRun } = this.run.family;
    if (mode !== 'replay' || sourceRun === null) return;
    const source = await this.tools.log.read(this.run.tenant, null, sourceRun);
    this.recorded = new Recorded(source?.events ?? []);
    this.values.learn(await this.tools.log.allValues(this.run.tenant, this.runId));
  }

  private async loadValues(): Promise<void> {
    const missing = refsOf(this.state).filter((ref) => !this.values.has(ref));
    if (missing.length > 0) this.values.learn(await this.tools.log.values(this.run.tenant, this.runId, missing));
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
    const timeout = Math.max(0, Math.min(this.nextLook(this.state) - this.tools.clock.now(), 60_000));
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
    return isTerminal(state.status) ? null : new Date(this.nextLook(state));
  }

  /** When time alone gives the run something to do: a sleeper, a deadline, its own end. */
  private nextLook(state: RunState): number {
    const deadlines = openInterrupts(state).flatMap(({ deadline }) => deadline ?? []);
    const sleepers = state.pausedAt === undefined ? this.asleep.values() : [];
    return Math.min(...sleepers, ...deadlines, state.startedAt + durationLimit(this.run, this.held.graph, this.tools.settings) + 1);
  }
}
