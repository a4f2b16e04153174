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

/** A run that keeps moving under a command is tried this often. */
const TRIES = 20;

export type Commanded<R> = { readonly response: R; readonly replayed: boolean };

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
    for (let tries = 0; tries < TRIES; tries += 1) {
      const page = await this.log.read(place.tenant, place.workspace, runId);
      if (!page) throw notFound();
      const graph = await this.workflows.graph(page.run, page.run.workflowId, page.run.revision);
      const state = fold(initial(runId, page.run.family.idBase ?? runId), page.events);
      const { at, until, end } = this.runs.lease();
      const batch = new Batch(graph, state);
      const decision = batch.add({ ...wish(state), at: at.getTime() });
      if (decision.is === 'rejected') {
        // A repeat of a granted wish meets a run that has moved on: the first answer stands.
        const earlier = idempotency && (await this.log.answered(place.tenant, idempotency));
        if (earlier) return { response: this.known<R>(earlier, idempotency), replayed: true };
        throw decision.error;
      }
      const response = answer(batch.state, batch.events.length > 0);
      if (batch.events.length === 0) {
        const earlier = idempotency && (await this.log.answered(place.tenant, idempotency));
        return earlier ? { response: this.known<R>(earlier, idempotency), replayed: true } : { response, replayed: false };
      }
      const ended = isTerminal(batch.state.status);
      const appended = await this.log.append({
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
      if (appended.is === 'replayed') return { response: appended.response as R, replayed: true };
      if (appended.is === 'mismatch') throw mismatch();
      if (appended.is !== 'ok') continue;
      this.bell.ring(BELLS.run.subject(runId));
      this.bell.ring(BELLS.work.subject(runId));
      if (ended) await this.tellFamily(place.tenant, page.run);
      if (appended.epoch !== null && !ended) {
        this.runs.start({
          run: { ...page.run, epoch: appended.epoch },
          graph,
          state: batch.state,
          epoch: appended.epoch,
          takeovers: 0,
          leaseEnd: end,
        });
      }
      return { response, replayed: false };
    }
    throw new WopError('run_state_conflict', 'The run kept changing while this was decided. Try again.');
  }

  /** Children that go with their parent, and a parent that waits, look at once; should a bell be lost, their own rows tell them. */
  private async tellFamily(tenant: string, { runId, family }: RunRow): Promise<void> {
    if (family.parentRun !== null) this.bell.ring(BELLS.work.subject(family.parentRun));
    for (const child of await this.log.children(tenant, runId)) this.bell.ring(BELLS.work.subject(child.runId));
  }

  private known<R>(earlier: { digest: string; response: Json }, idempotency: IdempotencyClaim): R {
    if (earlier.digest !== idempotency.digest) throw mismatch();
    return earlier.response as R;
  }
}

export const notFound = (): WopError => new WopError('not_found', 'There is no such run.');
export const mismatch = (): WopError =>
  new WopError('idempotency_key_mismatch', 'This Idempotency-Key was used before with a different request. Use a new key.');
