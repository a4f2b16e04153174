import type { Json } from '@isthmus/protocol';

/** Characters that could hide a marker from a reader but not from a model: control, format, default-ignorable, line separators. */
const HIDDEN = '[\\p{Cc}\\p{Cf}\\p{Default_Ignorable_Code_Point}\\u2028\\u2029]*';
/** Hidden characters may stand between any two. The slash brings its own, so that a run of them is walked once. */
const MARKER = new RegExp(`<${HIDDEN}(?:(/)${HIDDEN})?${[...'UNTRUSTED'].join(HIDDEN)}`, 'giu');

/**
 * A tool result, fenced for a model's eyes. Text that already looks fenced is fenced again, and a marker inside it is
 * defused, also one that invisible characters break up: the content cannot end its own fence. Clean content stays as it is.
 */
export function markUntrusted(toolName: string, value: Json): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const name = toolName.replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;');
  return `<UNTRUSTED tool="${name}">${defused(text)}</UNTRUSTED>`;
}

const defused = (text: string): string => text.replace(MARKER, (_, slash = '') => `&lt;${slash}UNTRUSTED`);
