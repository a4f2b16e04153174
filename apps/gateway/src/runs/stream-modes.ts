import { EVENTS, isEventType, type RunEvent, WopError } from '@isthmus/protocol';

export type Shows = (event: Pick<RunEvent, 'type'>) => boolean;
/** `values`: the run's state after each change instead of the changes. */
export type StreamMode = { readonly is: 'events'; readonly shows: Shows } | { readonly is: 'values' };

/** What each mode of events shows. `debug` shows all, vendor events too; `updates` what its table says. (stream-modes.md) */
const SHOWS = {
  updates: ({ type }) => isEventType(type) && EVENTS[type].updates,
  // Chunks of what a model says: no node of this host speaks to one, so the stream is open, empty, and ends with the run.
  messages: () => false,
  debug: () => true,
} as const satisfies Record<string, Shows>;
const SUPPORTED = ['values', ...Object.keys(SHOWS)];

export const UPDATES: StreamMode = { is: 'events', shows: SHOWS.updates };
export const showsAll: Shows = SHOWS.debug;

/** A comma list is the union of its modes; one unknown name refuses the whole request, never a silent fallback. */
export function parseStreamMode(text: string | undefined): StreamMode {
  if (text === undefined) return UPDATES;
  const names = [...new Set(text.split(',').map((name) => name.trim()))];
  if (names.length === 1 && names[0] === 'values') return { is: 'values' };
  if (names.includes('values')) throw unsupported('The mode values goes with no other: it sends states, the others events.');
  const modes = names.map((name) => (Object.hasOwn(SHOWS, name) ? SHOWS[name as keyof typeof SHOWS] : undefined));
  if (modes.some((mode) => !mode)) throw unsupported('streamMode names a mode that is not served here.');
  return { is: 'events', shows: (event) => modes.some((mode) => mode?.(event)) };
}

const unsupported = (message: string): WopError => new WopError('unsupported_stream_mode', message, { supported: SUPPORTED });
