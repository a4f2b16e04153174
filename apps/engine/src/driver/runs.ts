import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { Clock, Health, Logger } from '@isthmus/chassis';
import { Bell } from '@isthmus/messaging';
import { BELLS, type RunOutcome } from '@isthmus/protocol';
import { fold } from '../core/apply.js';
import { initial } from '../core/state.js';
import { type Claim, RunLog } from '../store/run-log.js';
import { Workflows } from '../store/workflows.js';
import { ChildRuns } from './child-runs.js';
import { Drive, type Held } from './drive.js';
import { DRIVER_SETTINGS, type DriverSettings } from './settings.js';
import { ToolCalls } from './tool-calls.js';

/** Most runs that one process drives at a time; more stay due for anyone. */
const MAX_DRIVES = 1_000;
/** A sweep looks at so many tenants and takes so many runs of each. */
const SWEEP_TENANTS = 200;
const SWEEP_PER_TENANT = 20;
const DRAIN_MS = 3_000;

/** The runs this process drives: takes leases, keeps them, finds lost ones and due timers. */
@Injectable()
export class Runs implements OnModuleInit {
  private readonly drives = new Map<string, { drive: Drive; done: Promise<void> }>();
  private readonly timers: NodeJS.Timeout[] = [];
  private cursor = '';
  private isSweeping = false;
  private isDraining = false;

  constructor(
    private readonly log: RunLog,
    private readonly workflows: Workflows,
    private readonly calls: ToolCalls,
    private readonly children: ChildRuns,
    private readonly bell: Bell,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly health: Health,
    @Inject(DRIVER_SETTINGS) private readonly settings: DriverSettings,
  ) {}

  onModuleInit(): void {
    const { leaseMs, sweepMs } = this.settings;
    this.bell.listen(BELLS.work.all, (subject) => this.drives.get(subject.slice(subject.lastIndexOf('.') + 1))?.drive.poke());
    this.timers.push(
      setInterval(() => void this.renew(), leaseMs / 3),
      setInterval(() => void this.sweep(), sweepMs),
    );
    this.health.onDrain(() => this.drain());
  }

  get instance(): string {
    return this.settings.instance;
  }

  /** When a lease that is asked for now will end, by the database's clock and by ours. Ours is taken before the asking. */
  lease(): { at: Date; until: Date; end: number } {
    const end = this.clock.monotonic() + this.settings.leaseMs;
    const at = this.clock.date();
    return { at, until: new Date(at.getTime() + this.settings.leaseMs), end };
  }

  /** Drives a run whose lease this process holds. */
  start(held: Held): Drive {
    const drive = new Drive(held, {
      log: this.log,
      calls: this.calls,
      children: this.children,
      runs: this,
      bell: this.bell,
      clock: this.clock,
      logger: this.logger,
      settings: this.settings,
    });
    const { runId } = held.run;
    this.drives.get(runId)?.drive.lost();
    const done = drive
      .drive()
      .catch((error: unknown) => this.logger.error('a run was let go after a fault; its lease ends by itself', { runId, error }))
      .finally(() => {
        if (this.drives.get(runId)?.drive === drive) this.drives.delete(runId);
      });
    this.drives.set(runId, { drive, done });
    return drive;
  }

  /** A run that got a new fact on a lease of this process: its driver looks, or one begins. */
  goOn(held: Held): void {
    const known = this.drives.get(held.run.runId)?.drive;
    // A second driver would abort what the first one has in flight.
    if (known && known.epoch === held.epoch && !known.isOver) known.poke();
    else this.start(held);
  }

  /** Waits until the run has ended or waits for the outside, at most `ms`. Undefined when it is still working then. */
  async settle(drive: Drive, ms: number): Promise<RunOutcome | undefined> {
    return new Promise((resolve) => {
      const stop = drive.whenSettled((outcome) => {
        clearTimeout(timer);
        resolve(outcome);
      });
      const timer = setTimeout(() => {
        stop();
        resolve(undefined);
      }, ms);
    });
  }

  /** Takes what is due: leases that ended, timers. Fair between tenants: from a rotating cursor, a few of each. */
  private async sweep(): Promise<void> {
    if (this.isSweeping || this.isDraining || this.drives.size >= MAX_DRIVES) return;
    this.isSweeping = true;
    try {
      const { at, until, end } = this.lease();
      const { claims, cursor } = await this.log.claimDue(this.settings.instance, at, until, this.cursor, SWEEP_TENANTS, SWEEP_PER_TENANT);
      this.cursor = cursor;
      await Promise.all(claims.map((claim) => this.takeOver(claim, end)));
    } catch (error) {
      this.logger.warn('the sweep for due runs failed and will be tried again', { error });
    } finally {
      this.isSweeping = false;
    }
  }

  private async takeOver(claim: Claim, leaseEnd: number): Promise<void> {
    const { tenant, runId, epoch, takeovers } = claim;
    try {
      const page = await this.log.read(tenant, null, runId);
      if (page?.run.epoch !== epoch) return;
      const graph = await this.workflows.graph(page.run, page.run.workflowId, page.run.revision);
      if (takeovers > 0) this.logger.info('took over a run', { runId, tenant, takeovers });
      this.start({
        run: page.run,
        graph,
        state: fold(initial(runId, page.run.family.idBase ?? runId), page.events),
        epoch,
        takeovers,
        leaseEnd,
      });
    } catch (error) {
      this.logger.error('a claimed run could not be loaded; its lease ends by itself', { runId, error });
    }
  }

  private async renew(): Promise<void> {
    if (this.drives.size === 0) return;
    const held = [...this.drives.values()].map(({ drive }) => drive);
    const { until, end } = this.lease();
    try {
      const kept = await this.log.renew(this.settings.instance, held, until);
      for (const drive of held) {
        if (kept.has(drive.runId)) {
          drive.renewed(end);
          if (kept.get(drive.runId)) drive.poke();
        } else if (this.drives.get(drive.runId)?.drive === drive) drive.poke();
      }
      // A work bell may have been lost: who holds a run for long still hears of an answer.
      for (const { runId, head } of await this.log.heads([...kept.keys()])) {
        const drive = this.drives.get(runId)?.drive;
        if (drive && head > drive.head) drive.poke();
      }
    } catch (error) {
      this.logger.warn('leases could not be renewed', { held: held.length, error });
    }
  }

  /** Finishes what ends soon, hands back the rest: another process goes on at once instead of waiting for the lease to end. */
  private async drain(): Promise<void> {
    this.isDraining = true;
    for (const timer of this.timers) clearInterval(timer);
    const all = [...this.drives.values()];
    await Promise.race([Promise.all(all.map(({ done }) => done)), new Promise((resolve) => setTimeout(resolve, DRAIN_MS).unref())]);
    await Promise.all([...this.drives.values()].map(({ drive }) => drive.handBack().catch(() => undefined)));
  }
}
