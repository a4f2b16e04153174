import { describe, expect, it } from '@jest/globals';
import { etagOf, matches } from './etag.js';

describe('an entity tag', () => {
  it('is strong, and another for other bytes', () => {
    expect(etagOf('a')).toMatch(/^"[\w-]{43}"$/);
    expect(etagOf('a', 12)).toMatch(/^"12-[\w-]{43}"$/);
    expect(etagOf('a')).toBe(etagOf('a'));
    expect(etagOf('a')).not.toBe(etagOf('b'));
  });

  it.each(['"x"', '"a", "x"', 'W/"x"', '*', ' "x" '])('is found in %j', (header) => {
    expect(matches(header, '"x"')).toBe(true);
  });

  it.each([undefined, '', '"y"', 'x', '"x', '"xx"'])('is not found in %j', (header) => {
    expect(matches(header, '"x"')).toBe(false);
  });
});
