import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { Clock, currentCarrier, Ids } from '@isthmus/chassis';
import { Bell, From, Handle } from '@isthmus/messaging';
import { BELLS, type Caller, engine, isoTime, isTerminal, type Output, type Parsed, WopError } from '@isthmus/protocol';
import { fold } from '../core/apply.js';
import { initial } from '../core/state.js';
import { Commands, notFound } from '../driver/commands.js';
import { Runs } from '../driver/runs.js';
import { DRIVER_SETTINGS, type DriverSettings } from '../driver/settings.js';
import { RunLog } from '../store/run-log.js';
import { Workflows } from '../store/workflows.js';

/** Pause, resume, fork: what people do to a run besides answering and cancelling it. */
@Controller()
export class LifecycleHandler {
  constructor(
    private readonly log: RunLog,
    private readonly workflows: Workflows,
    private readonly runs: Runs,
    private readonly commands: Commands,
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
    const page = await this.log.read(caller.tenant, caller.workspace, runId);
    if (!page) throw notFound();
    const state = fold(initial(runId, page.run.family.idBase ?? runId), page.events);
    const isBusy = [...state.nodes.values()].some(({ status }) => status === 'running');
    const by = caller.principal;
    if (drainPolicy === 'drain-current-node' && isBusy && !isTerminal(state.status) && state.pausedAt === undefined) {
      const at = this.clock.date();
      if (page.run.pause) throw new WopError('run_state_conflict', 'The run is about to be paused already.', { runStatus: state.status });
      await this.log.wishPause(caller.tenant, caller.workspace, runId, { by, ...(reason !== undefined && { reason }) }, at);
      this.bell.ring(BELLS.work.subject(runId));
      return { runId, status: 'paused', pausedAt: at.toISOString(), replayed: false };
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
    @Payload() { runId, mode, fromSeq, overlay }: Parsed<typeof engine.forkRun>,
  ): Promise<Output<typeof engine.forkRun>> {
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
    };
    if (!(await this.log.fork(row))) throw notFound();
    const page = await this.log.read(caller.tenant, caller.workspace, forked);
    if (page && !ended) {
      const graph = await this.workflows.graph(page.run, page.run.workflowId, page.run.revision);
      this.runs.start({ run: page.run, graph, state, epoch: 1, takeovers: 0, leaseEnd: end });
    }
    return { runId: forked, sourceRunId: runId, fromSeq, mode, status: ended ? state.status : 'running', replayed: false };
  }
}

type Overlay = NonNullable<Parsed<typeof engine.forkRun>['overlay']>;
const overlayOf = (overlay: Overlay | undefined) =>
  Object.fromEntries(Object.entries(overlay ?? {}).filter(([, value]) => value !== undefined));
