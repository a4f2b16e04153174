import { Inject, Injectable } from '@nestjs/common';
import { Bell } from '@isthmus/messaging';
import { BELLS, isTerminal, type Json, WopError } from '@isthmus/protocol';
import { Batch } from '../core/batch.js';
import type { Wish } from '../core/decision.js';
import { fold } from '../core/apply.js';
import { initial, type RunState } from '../core/state.js';
import { type IdempotencyClaim, RunLog, type RunRow } from '../store/run-log.js';
import { Workflows } from '../store/workflows.js';
import { Runs } from './runs.js';
import { DRIVER_SETTINGS, type DriverSettings } from './settings.js';

/** A run that keeps moving under a command is tried this often before its driver has to wait for the command. */
const PATIENCE = 3;

export type Commanded<R> = { readonly response: R; readonly replayed: boolean };
type Attempt<R> =
  /** The log grew meanwhile. */
  | { readonly is: 'again' }
  | { readonly is: 'rejected'; readonly error: WopError }
  | { readonly is: 'unchanged'; readonly response: R }
  | { readonly is: 'mismatch' }
  /** `tell`: once it is committed. */
  | { readonly is: 'put'; readonly response: R; readonly replayed: boolean; tell(): void };

/** Puts wishes of people to runs: fold, decide, append where the log still ends there, else again. First wins. */
@Injectable()
export class Commands {
  constructor(
    private readonly log: RunLog,
    private readonly workflows: Workflows,
    private readonly runs: Runs,
    private readonly bell: Bell,
    @Inject(DRIVER_SETTINGS) private readonly settings: DriverSettings,
  ) {}

  /**
   * @param answer what the asker is told, from the state after the wish; `changed` says whether the wish caused anything
   * @throws WopError not_found, what the run rejects, idempotency_key_mismatch
   */
  async put<R extends Json>(
    place: { tenant: string; workspace: string },
    runId: string,
    wish: (state: RunState) => Wish,
    answer: (state: RunState, changed: boolean) => R,
    idempotency?: IdempotencyClaim,
  ): Promise<Commanded<R>> {
    const attempt = (log: Pick<RunLog, 'read' | 'append'>): Promise<Attempt<R>> =>
      this.attempt(log, place, runId, wish, answer, idempotency);
    for (let tries = 0; tries <= PATIENCE; tries += 1) {
      // A driver that appends batch after batch would win every race.
      const tried = tries < PATIENCE ? await attempt(this.log) : await this.log.alone(place.tenant, runId, attempt);
      if (tried.is === 'again') continue;
      if (tried.is === 'mismatch') throw mismatch();
      if (tried.is === 'put') {
        tried.tell();
        return { response: tried.response, replayed: tried.replayed };
      }
      // A repeat of a granted wish meets a run that has moved on: the first answer stands.
      const earlier = idempotency && (await this.log.answered(place.tenant, idempotency));
      if (earlier) return { response: this.known<R>(earlier, idempotency), replayed: true };
      if (tried.is === 'rejected') throw tried.error;
      return { response: tried.response, replayed: false };
    }
    throw new WopError('run_state_conflict', 'The run kept changing while this was decided. Try again.');
  }

  private async attempt<R extends Json>(
    log: Pick<RunLog, 'read' | 'append'>,
    place: { tenant: string; workspace: string },
    runId: string,
    wish: (state: RunState) => Wish,
    answer: (state: RunState, changed: boolean) => R,
    idempotency?: IdempotencyClaim,
  ): Promise<Attempt<R>> {
    const page = await log.read(place.tenant, place.workspace, runId);
    if (!page) throw notFound();
    const graph = await this.workflows.graph(page.run, page.run.workflowId, page.run.revision);
    const state = fold(initial(runId, page.run.family.idBase ?? runId), page.events);
    const { at, until, end } = this.runs.lease();
    const batch = new Batch(graph, state);
    const decision = batch.add({ ...wish(state), at: at.getTime() });
    if (decision.is === 'rejected') return decision;
    const response = answer(batch.state, batch.events.length > 0);
    if (batch.events.length === 0) return { is: 'unchanged', response };
    const ended = isTerminal(batch.state.status);
    const appended = await log.append({
      tenant: place.tenant,
      runId,
      expected: state.head,
      epoch: null,
      owner: this.settings.instance,
      at,
      events: batch.events,
      status: batch.state.status,
      ended,
      // A vote that settles nothing leaves a run that waits as it is; but its timers stand in its due time.
      release: ended,
      due: ended ? null : until,
      ...(idempotency && { idempotency: { ...idempotency, response } }),
    });
    if (appended.is === 'replayed') return { is: 'put', response: appended.response as R, replayed: true, tell: () => undefined };
    if (appended.is === 'mismatch') return { is: 'mismatch' };
    if (appended.is !== 'ok') return { is: 'again' };
    const { epoch } = appended;
    const tell = (): void => {
      this.bell.ring(BELLS.run.subject(runId));
      this.bell.ring(BELLS.work.subject(runId));
      if (ended) void this.tellFamily(place.tenant, page.run);
      if (epoch !== null && !ended)
        this.runs.goOn({ run: { ...page.run, epoch }, graph, state: batch.state, epoch, takeovers: 0, leaseEnd: end });
    };
    return { is: 'put', response, replayed: false, tell };
  }

  /** Children that go with their parent, and a parent that waits, look at once; should a bell be lost, their own rows tell them. */
  private async tellFamily(tenant: string, { runId, family }: RunRow): Promise<void> {
    if (family.parentRun !== null) this.bell.ring(BELLS.work.subject(family.parentRun));
    const children = await this.log.children(tenant, runId).catch(() => []);
    for (const child of children) this.bell.ring(BELLS.work.subject(child.runId));
  }

  private known<R>(earlier: { digest: string; response: Json }, idempotency: IdempotencyClaim): R {
    if (earlier.digest !== idempotency.digest) throw mismatch();
    return earlier.response as R;
  }
}

export const notFound = (): WopError => new WopError('not_found', 'There is no such run.');
export const mismatch = (): WopError =>
  new WopError('idempotency_key_mismatch', 'This Idempotency-Key was used before with a different request. Use a new key.');
