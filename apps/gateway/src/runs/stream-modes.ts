import { EVENTS, isEventType, type RunEvent, WopError } from '@isthmus/protocol';

/** What each served mode shows. `debug` shows all, vendor events too; `updates` what its table says. (stream-modes.md) */
const MODES = {
  updates: (event: Pick<RunEvent, 'type'>) => isEventType(event.type) && EVENTS[event.type].updates,
  debug: () => true,
} as const satisfies Record<string, (event: Pick<RunEvent, 'type'>) => boolean>;

export type Shows = (event: Pick<RunEvent, 'type'>) => boolean;
export const showsAll: Shows = MODES.debug;

/** A comma list is the union of its modes; one unknown name refuses the whole request, never a silent fallback. */
export function parseStreamMode(text: string | undefined): Shows {
  if (text === undefined) return MODES.updates;
  const names = [...new Set(text.split(',').map((name) => name.trim()))];
  const modes = names.map((name) => (Object.hasOwn(MODES, name) ? MODES[name as keyof typeof MODES] : undefined));
  if (modes.some((mode) => !mode)) {
    throw new WopError('unsupported_stream_mode', 'streamMode names a mode that is not served here.', { supported: Object.keys(MODES) });
  }
  return (event) => modes.some((mode) => mode?.(event));
}
