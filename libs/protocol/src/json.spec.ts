import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { jsonProblem, MAX_JSON_DEPTH } from './json.js';

const NUL = String.fromCharCode(0);
const HALF = String.fromCharCode(0xd800);

const nested = (depth: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = level % 2 ? [value] : { a: value };
  return value;
};
/** JSON text as a client would send it: the only way to an own member called __proto__. */
const parsed = (text: string): unknown => JSON.parse(text);

describe('a JSON document at the door', () => {
  it('is fine when the database can hold it', () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ maxDepth: 8, stringUnit: 'grapheme' }),
        (value) => jsonProblem(value) === undefined || JSON.stringify(value).includes('\\u0000'),
      ),
    );
    expect(jsonProblem({ a: [1, null, true, 'ä😀', { 'b.c': '' }] })).toBeUndefined();
  });

  it.each([
    [{ inputs: { a: `x${NUL}` } }, '"inputs.a" contains U+0000'],
    [{ inputs: [{ a: HALF }] }, '"inputs.0.a" contains half of a surrogate pair'],
    [`${HALF}x`, 'the document contains half of a surrogate pair'],
    ['\uDC00\uD800', 'the document contains half of a surrogate pair'],
    [{ [`k${NUL}`]: 1 }, 'a member name in the document contains U+0000'],
    [{ a: { [HALF]: 1 } }, 'a member name in "a" contains half of a surrogate pair'],
    [parsed('{"a":{"__proto__":{"isAdmin":true}}}'), 'a member name in "a" is a forbidden member name'],
    [parsed('{"a":[0,1e400]}'), '"a.1" is a number out of range'],
    [{ 'sk-live-abcdef': NUL }, '"[redacted]" contains U+0000'],
  ])('is refused when it holds what the database cannot: %#', (document, problem) => {
    expect(jsonProblem(document)).toBe(problem);
  });

  it('may be nested exactly as deep as is documented', () => {
    expect(jsonProblem(nested(MAX_JSON_DEPTH))).toBeUndefined();
    expect(jsonProblem(nested(MAX_JSON_DEPTH + 1))).toBe('the document is nested deeper than 64 levels');
  });

  it('cannot overflow the stack of who checks it', () => {
    expect(jsonProblem(nested(200_000))).toBe('the document is nested deeper than 64 levels');
  });

  it('is refused wherever the bad text hides', () => {
    const bad = fc.constantFrom(NUL, HALF, '\uDFFF');
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'b'), { maxLength: 20 }), bad, fc.string(), fc.boolean(), (path, text, before, isName) => {
        const leaf: unknown = isName ? { [`${before}${text}.`]: 1 } : `${before}${text}.`;
        const document = path.reduceRight<unknown>((inner, name) => (name === 'a' ? [0, inner] : { [name]: inner }), leaf);
        expect(jsonProblem(document)).toMatch(/contains (U\+0000|half of a surrogate pair)$/);
      }),
    );
  });
});
