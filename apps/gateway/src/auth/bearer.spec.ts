import { describe, expect, it } from '@jest/globals';
import { bearerToken } from './bearer.js';

describe('bearer tokens', () => {
  it.each(['Bearer abc.DEF-_~+/1==', 'bearer   abc.DEF-_~+/1==', 'Bearer abc.DEF-_~+/1== '])('reads %j', (header) => {
    expect(bearerToken(header)).toBe('abc.DEF-_~+/1==');
  });

  it.each([undefined, '', 'Bearer', 'Bearer ', 'Basic YTpi', 'Bearer a b', 'Bearer "a"', 'abc', `Bearer ${'x'.repeat(5_000)}`])(
    'refuses %j as unauthenticated',
    (header) => {
      expect(() => bearerToken(header)).toThrow(expect.objectContaining({ code: 'unauthenticated' }));
    },
  );

  it('never repeats what it refuses', () => {
    expect(() => bearerToken('Basic canary-secret')).toThrow(expect.objectContaining({ message: expect.not.stringContaining('canary') }));
  });
});
