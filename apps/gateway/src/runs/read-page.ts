import type { Bus } from '@isthmus/messaging';
import { engine, isTerminal, type Output } from '@isthmus/protocol';
import type { Page } from './run-reader.js';

export type ReadPage = Page & { readonly more: boolean; readonly head: number; readonly status: Output<typeof engine.readRun>['status'] };

/** A page of a run's log, as far as one message holds it, with the rights of `passport`. */
export async function readPage(bus: Bus, passport: string, runId: string, from: number): Promise<ReadPage> {
  const { events = [], more: isCut, head, status } = await bus.call(engine.readRun, { runId, fromSequence: from }, { passport });
  const last = events.at(-1);
  const more = isCut && last !== undefined;
  return { from, next: last ? last.sequence + 1 : from, events, more, head, status, isOver: !more && isTerminal(status) };
}
