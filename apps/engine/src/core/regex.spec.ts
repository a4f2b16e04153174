import { describe, expect, it } from '@jest/globals';
import { matches, regexProblem } from './regex.js';
import { inTime } from './given.suite.js';

describe('a regular expression', () => {
  it.each([
    ['b+', 'abbc', true],
    ['^b+$', 'abbc', false],
    ['', '', true],
    ['(?i)HELLO', 'say hello', true],
    ['^\\p{Lu}', 'Éa', true],
    ['a.c', 'a\nc', false],
  ])('%j occurs in %j: %s', (pattern, text, found) => {
    expect(matches(pattern, text)).toBe(found);
  });

  it.each(['(', '(?=x)', '(?<!x)y', '(a)\\1', '[z-a]', 'a{2000}'])('that is not RE2’s is refused: %s', (pattern) => {
    expect(regexProblem(pattern)).toMatch(/does not parse/);
    expect(() => matches(pattern, 'x')).toThrow();
  });

  it('is looked for in linear time, also where a backtracking one would take years', () => {
    inTime(2_000, () => expect(matches('(a+)+$', `${'a'.repeat(50_000)}!`)).toBe(false));
    inTime(2_000, () => expect(matches('(x+x+)+y', 'x'.repeat(10_000))).toBe(false));
    inTime(2_000, () => expect(matches('^(\\w+\\s?)*$', `${'word '.repeat(2_000)}!`)).toBe(false));
  });

  it('that could take long on a text is an error, not an answer: a large program costs its size at every character', () => {
    const text = 'xw'.repeat(50_000);
    inTime(2_000, () => expect(() => matches('x.{900}[yz]', text)).toThrow(/too long/));
    inTime(2_000, () => expect(matches('x.{300}[yz]', text.slice(0, 10_000))).toBe(false));
    inTime(2_000, () => expect(matches('x[yz]', text)).toBe(false));
  });

  it.each(['x'.repeat(1_001), `(?:${'ab'.repeat(200)}){500}`, Array.from({ length: 50 }, () => '.{900}').join('|')])(
    'that is too large to compile is refused at the door',
    (pattern) => {
      inTime(2_000, () => expect(regexProblem(pattern)).toMatch(/too large/));
    },
  );

  it('sees the whole text: nothing behind some length is passed over in silence', () => {
    expect(matches('needle', `${'x'.repeat(300_000)}needle`)).toBe(true);
  });
});
