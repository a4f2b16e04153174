import { isRunId } from '@isthmus/protocol';
import { describe, expect, it } from '@jest/globals';
import { afterOf, cursorAfter } from './cursor.js';

describe('a cursor', () => {
  const id = '01a229ac-60ed-70f2-afaa-6dff9533ad17';

  it('leads back to the entry it came from', () => {
    expect(afterOf(cursorAfter(id), isRunId)).toBe(id);
  });

  it.each(['', 'garbage', id, cursorAfter('-'.repeat(36)), cursorAfter('\u0000'), `${cursorAfter(id)}=`, `${cursorAfter(id)}A`])(
    'is not %j',
    (cursor) => {
      expect(() => afterOf(cursor, isRunId)).toThrow('The cursor is not one that this list gave out.');
    },
  );
});
