import { RE2JS } from 're2js';
import { remember } from './remember.js';

const MAX_LENGTH = 1_000;
/** Length times repetitions: what compiling costs. */
const MAX_WEIGHT = 50_000;
/** Size of the program times length of the text: what matching costs. RE2 is linear in the text, but every character may cost the whole program. */
const MAX_STEPS = 5_000_000;

const compiled = new Map<string, RE2JS>();

/** Does the pattern occur in the text? @throws Error when the pattern does not parse, or could take too long on this text */
export function matches(pattern: string, text: string): boolean {
  const regex = remember(compiled, pattern, () => compile(pattern));
  if (text.length * regex.programSize() > MAX_STEPS) throw new Error('the text is too long for this regular expression');
  return regex.matcher(text).find();
}

function compile(pattern: string): RE2JS {
  const repetitions = [...pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].reduce((sum, [, least, most]) => sum + Number(most || least), 1);
  if (pattern.length > MAX_LENGTH || pattern.length * repetitions > MAX_WEIGHT) throw new Error('the regular expression is too large');
  return RE2JS.compile(pattern);
}

export function regexProblem(pattern: string): string | undefined {
  try {
    matches(pattern, '');
    return undefined;
  } catch {
    return 'the regular expression does not parse (RE2 syntax: no look-around, no back-references) or is too large';
  }
}
