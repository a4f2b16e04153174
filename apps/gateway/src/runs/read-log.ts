import type { Bus } from '@isthmus/messaging';
import { engine, type Output, type RunEvent, type RunSnapshot, type RunStatus } from '@isthmus/protocol';

export type RunRecord = {
  readonly runId: string;
  readonly status: RunStatus;
  readonly snapshot: RunSnapshot;
  readonly events: readonly RunEvent[];
  /** The log goes on after the last of `events`. */
  readonly isCut: boolean;
};

/**
 * A run's snapshot and the log it was folded from, as far as `maxBytes` of events go. What happens to the run while its pages are
 * read is left out, so that the two speak of the same moment.
 */
export async function readLog(bus: Bus, passport: string, runId: string, maxBytes: number): Promise<RunRecord> {
  const first = await bus.call(engine.readRun, { runId, want: ['events', 'snapshot'] }, { passport });
  const { head, status } = first;
  const snapshot = first.snapshot as RunSnapshot;
  const events: RunEvent[] = [];
  let bytes = 0;
  for (let page: Output<typeof engine.readRun> = first; ; ) {
    for (const event of page.events ?? []) {
      if (event.sequence > head) return { runId, status, snapshot, events, isCut: false };
      bytes += Buffer.byteLength(JSON.stringify(event));
      if (bytes > maxBytes) return { runId, status, snapshot, events, isCut: true };
      events.push(event);
    }
    const last = events.at(-1);
    if (!page.more || !last || last.sequence >= head || page.events?.length === 0) return { runId, status, snapshot, events, isCut: false };
    page = await bus.call(engine.readRun, { runId, fromSequence: last.sequence + 1 }, { passport });
  }
}
