export type EventFormat = 'sse' | 'json';

/**
 * How the caller wants its events: a stream where the header names one, else JSON where it names that, else the
 * specification's default. (stream-modes.md; suites send `application/json` on everything)
 */
export function eventFormat(accept: string | undefined): EventFormat {
  const types = (accept ?? '').toLowerCase();
  if (types.includes('text/event-stream')) return 'sse';
  return types.includes('application/json') ? 'json' : 'sse';
}
