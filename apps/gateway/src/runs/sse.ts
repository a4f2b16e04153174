import type { RunEvent } from '@isthmus/protocol';

/** Without an id, so that it moves no client's place in the log. */
export const KEEPALIVE = ':keepalive\n\n';

export const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  // Proxies that buffer would hold back a quiet run's events.
  'x-accel-buffering': 'no',
} as const;

/** What a frame carries: an event of the log, or the state at its place. */
export type Streamed = Pick<RunEvent, 'sequence' | 'type'>;

/** `event:` is the event's type, not the mode: clients read types, in mixed streams too. JSON has no line breaks. */
export const frame = (event: Streamed): string => `id: ${event.sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

/** Several at once, in order; the id is the highest of theirs. (stream-modes.md, aggregation hint) */
export const batchFrame = (events: readonly Streamed[]): string =>
  `id: ${events.at(-1)?.sequence}\nevent: batch\ndata: ${JSON.stringify(events)}\n\n`;

/** Postgres holds sequences as 32 bits; a place behind every log is still a place. */
const FURTHEST = 2_147_483_646;

/** The sequence to go on from after `Last-Event-ID`. Garbage is as good as absent. (stream-modes.md, reconnect) */
export function resumeFrom(lastEventId: string | undefined): number {
  const id = lastEventId?.trim();
  return id && /^\d{1,15}$/.test(id) ? nextAfter(Number(id)) : 0;
}

export const nextAfter = (sequence: number): number => Math.min(sequence, FURTHEST) + 1;
