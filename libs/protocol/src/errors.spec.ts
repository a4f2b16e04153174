import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { z } from 'zod';
import { ErrorEnvelope, ERRORS, type ErrorCode, fromEnvelope, isWopError, validationError, WopError } from './errors.js';

const CODES = Object.keys(ERRORS) as ErrorCode[];

describe('an error of the table', () => {
  it('is the same after it has crossed a wire', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...CODES),
        fc.string(),
        fc.option(fc.dictionary(fc.string(), fc.string()), { nil: undefined }),
        (code, message, details) => {
          const sent = new WopError(code, message, details);
          const wire = ErrorEnvelope.parse(JSON.parse(JSON.stringify(sent.toEnvelope())));
          const received = fromEnvelope(wire);
          expect(received.toEnvelope()).toEqual(sent.toEnvelope());
          expect([received.status, received.retriable, received.jsonRpcCode]).toEqual([sent.status, sent.retriable, sent.jsonRpcCode]);
          expect(isWopError(received)).toBe(true);
        },
      ),
    );
  });

  it('has exactly the three members of the envelope, and no empty details', () => {
    expect(new WopError('not_found', 'No.').toEnvelope()).toEqual({ error: 'not_found', message: 'No.' });
    expect(Object.keys(new WopError('not_found', 'No.').toEnvelope())).toEqual(['error', 'message']);
    expect(ErrorEnvelope.safeParse({ error: 'x', message: 'y', stack: 'z' }).success).toBe(false);
  });

  it.each(['constructor', '__proto__', 'toString', 'no_such_code'])(
    'is never made of the unknown code %s, and nothing of such an answer is repeated',
    (error) => {
      expect(fromEnvelope({ error, message: 'secret', details: { secret: 1 } }).toEnvelope()).toEqual({
        error: 'internal_error',
        message: 'Another part of the host failed.',
      });
    },
  );

  it('keeps its cause', () => {
    const cause = new Error('deeper');
    expect(new WopError('internal_error', 'x', undefined, { cause }).cause).toBe(cause);
  });

  it('is told from errors of others by its shape', () => {
    expect(isWopError(Object.assign(new Error('x'), { name: 'WopError', code: 'not_found' }))).toBe(true);
    expect(isWopError(Object.assign(new Error('x'), { name: 'WopError', code: 'ENOENT' }))).toBe(false);
    expect(isWopError({ name: 'WopError', code: 'not_found' })).toBe(false);
  });
});

describe('a validation error', () => {
  const Body = z.strictObject({ id: z.string(), tags: z.record(z.string(), z.number()).optional() });
  const problemOf = (body: unknown) => {
    const result = Body.safeParse(body);
    if (result.success) throw new Error('valid');
    return validationError(result.error, 'body');
  };

  it('says where and what', () => {
    const error = problemOf({ id: 1 });
    expect(error.message).toBe('The body is not valid at "id": Invalid input: expected string, received number.');
    expect(error.details).toEqual({ issues: [{ path: 'id', message: 'Invalid input: expected string, received number' }] });
  });

  it('names an unknown member that looks harmless', () => {
    expect(problemOf({ id: 'x', workflow: 1 }).message).toBe('The body is not valid: unknown member "workflow".');
  });

  it.each([
    'sk-live-abcdef123456',
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N',
    'AKIAIOSFODNN7EXAMPLE',
    'ghp_abcdefghijklmnopqrstuvwxyz0123456789',
    'gho_abcdefghijklmnopqrstuvwxyz0123456789',
    'github_pat_11ABCDEFG0abcdefghij',
    'Bearer abcdef',
  ])('never repeats the member name %s', (name) => {
    for (const body of [{ id: 'x', [name]: 1 }, { [name]: { deep: 1 } }, { id: 'x', tags: { [name]: 'no number' } }]) {
      expect(JSON.stringify(problemOf(body).toEnvelope())).not.toContain(name);
    }
  });

  it.each(['a name with spaces', 'x'.repeat(41)])('does not repeat the unknown member %j either: nobody knows what it is', (name) => {
    expect(JSON.stringify(problemOf({ id: 'x', [name]: 1 }).toEnvelope())).not.toContain(name);
  });

  it('never repeats a value', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^canary[a-z]{6}$/), fc.constantFrom('id', 'tags', 'other'), (canary, member) => {
        const error = problemOf({ id: 7, [member]: member === 'id' ? [canary] : canary });
        expect(JSON.stringify(error.toEnvelope())).not.toContain(canary);
      }),
    );
  });

  it('lists ten issues at most', () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`t${index}`, 'x']));
    expect(problemOf({ id: 'x', tags: many }).details?.['issues']).toHaveLength(10);
  });
});
