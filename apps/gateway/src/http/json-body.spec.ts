import { describe, expect, it } from '@jest/globals';
import { parseJsonBody } from './json-body.js';

const bytes = (text: string): Buffer => Buffer.from(text, 'utf8');
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);

describe('request bodies', () => {
  it('gives what stands there', () => {
    expect(parseJsonBody(bytes('{"a":[1,"zwei",null]}'))).toEqual({ a: [1, 'zwei', null] });
  });

  it('takes no bytes for no body', () => {
    expect(parseJsonBody(Buffer.alloc(0))).toBeUndefined();
  });

  it.each([
    ['half a document', bytes('{"a":')],
    ['two documents', bytes('{}{}')],
    ['a byte order mark', bytes('\uFEFF{}')],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['half of a UTF-8 sequence', Buffer.from([0x22, 0xc3])],
    ['U+0000 in a value', bytes('{"a":"\\u0000"}')],
    ['U+0000 in a name', bytes('{"\\u0000":1}')],
    ['half of a surrogate pair', bytes('"\\ud800"')],
    ['a prototype', bytes('{"__proto__":{"isAdmin":true}}')],
    ['a number beyond all numbers', bytes('{"a":1e999}')],
    ['more than 64 levels', bytes(nested(66))],
    ['as many levels as fit', bytes(nested(100_000))],
  ])('refuses %s as a validation error', (_, body) => {
    expect(() => parseJsonBody(body)).toThrow(expect.objectContaining({ code: 'validation_error' }));
  });

  it('does not repeat the body in its refusal', () => {
    expect(() => parseJsonBody(bytes('{"key": sk-secret-123456}'))).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('secret') }),
    );
  });
});
