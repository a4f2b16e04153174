import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { Clock, currentCarrier, Ids } from '@isthmus/chassis';
import { Bell, From, Handle } from '@isthmus/messaging';
import {
  BELLS,
  type Caller,
  engine,
  type Idempotency,
  isoTime,
  isRunId,
  isTerminal,
  isWopError,
  type Json,
  type Output,
  type Parsed,
  WopError,
} from '@isthmus/protocol';
import { fold } from '../core/apply.js';
import { initial } from '../core/state.js';
import { Commands, mismatch, notFound } from '../driver/commands.js';
import { Runs } from '../driver/runs.js';
import { DRIVER_SETTINGS, type DriverSettings } from '../driver/settings.js';
import { IdempotencyKeys } from '../store/idempotency-keys.js';
import { type Keyed, RunLog } from '../store/run-log.js';
import { Workflows } from '../store/workflows.js';

/** Runs cancelled at a time: a hundred must not take every connection of the pool. */
const WAVE = 5;

/** Pause, resume, fork, cancel many: what people do to runs besides answering and cancelling them. */
@Controller()
export class LifecycleHandler {
  constructor(
    private readonly log: RunLog,
    private readonly workflows: Workflows,
    private readonly runs: Runs,
    private readonly commands: Commands,
    private readonly keys: IdempotencyKeys,
    private readonly bell: Bell,
    private readonly clock: Clock,
    private readonly ids: Ids,
    @Inject(DRIVER_SETTINGS) private readonly settings: DriverSettings,
  ) {}

  @Handle(engine.pauseRun)
  async pause(
    @From() caller: Caller,
    @Payload() { runId, reason, drainPolicy, idempotency }: Parsed<typeof engine.pauseRun>,
  ): Promise<Output<typeof engine.pauseRun>> {
    const earlier = await this.earlier<Output<typeof engine.pauseRun>>(caller, idempotency);
    if (earlier) return { ...earlier, replayed: true };
    const page = await this.log.read(caller.tenant, caller.workspace, runId);
    if (!page) throw notFound();
    const state = fold(initial(runId, page.run.family.idBase ?? runId), page.events);
    const isBusy = [...state.nodes.values()].some(({ status }) => status === 'running');
    const by = caller.principal;
    if (drainPolicy === 'drain-current-node' && isBusy && !isTerminal(state.status) && state.pausedAt === undefined) {
      const at = this.clock.date();
      if (page.run.pause) throw new WopError('run_state_conflict', 'The run is about to be paused already.', { runStatus: state.status });
      const answer = { runId, status: 'paused' as const, pausedAt: at.toISOString() };
      const wish = { by, ...(reason !== undefined && { reason }) };
      const wished = await this.log.wishPause(caller.tenant, caller.workspace, runId, wish, at, keyed(idempotency, answer));
      const known = knownTo<typeof answer>(wished);
      if (known) return { ...known, replayed: true };
      // Otherwise it ended meanwhile, and says so below.
      if (wished.is === 'done') {
        this.bell.ring(BELLS.work.subject(runId));
        return { ...answer, replayed: false };
      }
    }
    const { response, replayed } = await this.commands.put(
      caller,
      runId,
      () => ({ type: 'pause', drainPolicy, by, ...(reason !== undefined && { reason }) }),
      ({ pausedAt }) => ({ runId, status: 'paused', pausedAt: isoTime(pausedAt ?? 0) }),
      idempotency,
    );
    return { ...response, status: 'paused', replayed };
  }

  @Handle(engine.resumeRun)
  async resume(
    @From() caller: Caller,
    @Payload() { runId, reason, idempotency }: Parsed<typeof engine.resumeRun>,
  ): Promise<Output<typeof engine.resumeRun>> {
    const resumedAt = this.clock.date().toISOString();
    const { response, replayed } = await this.commands.put(
      caller,
      runId,
      () => ({ type: 'resume', by: caller.principal, ...(reason !== undefined && { reason }) }),
      () => ({ runId, status: 'running', resumedAt }),
      idempotency,
    );
    return { ...response, status: 'running', replayed };
  }

  @Handle(engine.forkRun)
  async fork(
    @From() caller: Caller,
    @Payload() { runId, mode, fromSeq, overlay, idempotency }: Parsed<typeof engine.forkRun>,
  ): Promise<Output<typeof engine.forkRun>> {
    const earlier = await this.earlier<Output<typeof engine.forkRun>>(caller, idempotency);
    if (earlier) return { ...earlier, replayed: true };
    const source = await this.log.read(caller.tenant, caller.workspace, runId);
    if (!source) throw notFound();
    if (mode === 'replay' && overlay && Object.keys(overlay).length > 0)
      throw new WopError('validation_error', 'A replay runs with the options of its source: leave runOptionsOverlay out, or branch.', {
        path: 'runOptionsOverlay',
      });
    const { head, options, family } = source.run;
    if (fromSeq > head + 1)
      throw new WopError('fork_point_invalid', `The log of the run ends at ${head}; fromSeq ${fromSeq} lies beyond it.`, {
        sourceRunId: runId,
        fromSeq,
      });
    // run.started is history in any case: it is what a run begins with.
    const fromSequence = Math.max(1, fromSeq);
    const forked = this.ids.run();
    const state = fold(
      initial(forked, family.idBase ?? runId),
      source.events.filter(({ sequence }) => sequence < fromSequence),
    );
    const ended = isTerminal(state.status);
    const { at, until, end } = this.runs.lease();
    const status = ended ? state.status : ('running' as const);
    const answer = { runId: forked, sourceRunId: runId, fromSeq, mode, status };
    const row = {
      tenant: caller.tenant,
      workspace: caller.workspace,
      sourceRun: runId,
      runId: forked,
      fromSequence,
      mode,
      owner: this.settings.instance,
      at,
      leaseUntil: until,
      options: { ...options, ...overlayOf(overlay) },
      trace: currentCarrier(),
      status: state.status,
      ended,
      ...(idempotency && { idempotency: { ...idempotency, response: answer } }),
    };
    const made = await this.log.fork(row);
    const known = knownTo<typeof answer>(made);
    if (known) return { ...known, replayed: true };
    if (made.is === 'missing') throw notFound();
    const page = await this.log.read(caller.tenant, caller.workspace, forked);
    if (page && !ended) {
      const graph = await this.workflows.graph(page.run, page.run.workflowId, page.run.revision);
      this.runs.start({ run: page.run, graph, state, epoch: 1, takeovers: 0, leaseEnd: end });
    }
    return { ...answer, replayed: false };
  }

  /** The key is claimed first and the work done after it, again on a repeat: cancelling twice comes out the same. */
  @Handle(engine.cancelRuns)
  async cancelMany(
    @From() caller: Caller,
    @Payload() { runIds, reason, idempotency }: Parsed<typeof engine.cancelRuns>,
  ): Promise<Output<typeof engine.cancelRuns>> {
    const claimed = idempotency && (await this.keys.claim(caller.tenant, idempotency, this.clock.date()));
    if (claimed?.is === 'mismatch') throw mismatch();
    const results: Verdict[] = [];
    for (let at = 0; at < runIds.length; at += WAVE)
      results.push(...(await Promise.all(runIds.slice(at, at + WAVE).map((runId) => this.cancelOne(caller, runId, reason)))));
    return { results, replayed: claimed?.is === 'known' };
  }

  private async cancelOne(caller: Caller, runId: string, reason: string | undefined): Promise<Verdict> {
    try {
      if (!isRunId(runId)) throw notFound();
      const { response: status } = await this.commands.put(
        caller,
        runId,
        () => ({ type: 'cancel', by: caller.principal, ...(reason !== undefined && { reason }) }),
        (state) => state.status,
      );
      if (status !== 'cancelled') throw new WopError('run_terminal', 'The run had ended before.', { runStatus: status });
      return { runId, ok: true, status };
    } catch (error) {
      if (!isWopError(error)) throw error;
      return { runId, ok: false, error: error.toEnvelope() };
    }
  }

  /** What a request with the same key was answered before; it holds even when the run has moved on since. */
  private async earlier<R>(caller: Caller, idempotency: Idempotency | undefined): Promise<R | undefined> {
    const found = idempotency && (await this.log.answered(caller.tenant, idempotency));
    if (found && found.digest !== idempotency?.digest) throw mismatch();
    return found?.response as R | undefined;
  }
}

type Verdict = Output<typeof engine.cancelRuns>['results'][number];

const keyed = (idempotency: Idempotency | undefined, response: Json) => idempotency && { ...idempotency, response };

/** The answer that a request with the same key got at the same time as this one. */
function knownTo<R>(keyed: Keyed): R | undefined {
  if (keyed.is === 'mismatch') throw mismatch();
  return keyed.is === 'known' ? (keyed.response as R) : undefined;
}

type Overlay = NonNullable<Parsed<typeof engine.forkRun>['overlay']>;
const overlayOf = (overlay: Overlay | undefined) =>
  Object.fromEntries(Object.entries(overlay ?? {}).filter(([, value]) => value !== undefined));
