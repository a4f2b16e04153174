import type { Json } from '@isthmus/protocol';

/** Invisible characters that could hide a marker from a reader but not from a model. */
const INVISIBLE = /[\u200B-\u200F\u2028-\u202E\u2060-\u2064\uFEFF\u00AD]/g;
const MARKER = /<(\/?)UNTRUSTED/gi;

/**
 * A tool result, fenced for a model's eyes. Text that already looks fenced is fenced again, and a marker inside it is
 * defused, also one that invisible characters break up: the content cannot end its own fence. Clean content stays as it is.
 */
export function markUntrusted(toolName: string, value: Json): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const name = toolName.replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;');
  return `<UNTRUSTED tool="${name}">${defused(text)}</UNTRUSTED>`;
}

function defused(text: string): string {
  const bare = text.replace(INVISIBLE, '');
  const suspect = bare !== text && MARKER.test(bare) ? bare : text;
  MARKER.lastIndex = 0;
  return suspect.replace(MARKER, (_, slash: string) => `&lt;${slash}UNTRUSTED`);
}
