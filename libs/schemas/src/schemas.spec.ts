import { describe, expect, it } from '@jest/globals';
import { schemaProblem } from './schemas.js';

describe('a schema', () => {
  it.each([
    [{ type: 'object', required: ['a'] }, {}, { path: 'a', message: 'is required' }],
    [
      { type: 'object', properties: { a: { properties: { b: { type: 'number' } } } } },
      { a: { b: 'x' } },
      { path: 'a.b', message: 'must be number' },
    ],
    [
      { type: 'object', additionalProperties: false },
      { 'sk-secret': 1 },
      { path: '', message: 'has a member that the schema does not know' },
    ],
    [{ type: 'object', additionalProperties: { type: 'number' } }, { 'sk-secret': 'x' }, { path: '*', message: 'must be number' }],
    [
      { properties: { email: { type: 'string', format: 'email' } } },
      { email: 'nobody' },
      { path: 'email', message: 'must match format "email"' },
    ],
    [{ prefixItems: [{ type: 'string' }], items: false }, ['a', 'b'], { path: '', message: 'must NOT have more than 1 items' }],
  ])('says where and what, and repeats no value (%j)', (schema, value, problem) => {
    expect(schemaProblem(schema, value as never)).toEqual(problem);
  });

  it('that leads elsewhere is unusable: nothing is fetched', () => {
    expect(schemaProblem({ type: 'object', properties: { a: { $ref: 'https://example.com/schema.json' } } }, {})).toBe('unusable');
  });

  it('that would answer later is unusable, for a promise is never false', () => {
    expect(schemaProblem({ $async: true, type: 'object', required: ['a'] }, {})).toBe('unusable');
  });

  it('of another dialect is read as 2020-12', () => {
    expect(
      schemaProblem({ $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', required: ['a'] }, { a: 1 }),
    ).toBeUndefined();
  });

  it('knows nothing of what other schemas named: their ids are theirs', () => {
    const theirs = {
      type: 'object',
      $defs: { n: { $id: 'https://example.com/n', type: 'string' } },
      properties: { a: { $ref: 'https://example.com/n' } },
    };
    expect(schemaProblem(theirs, { a: 'x' })).toBeUndefined();
    const ours = { type: 'object', $defs: { n: { type: 'number' } }, properties: { b: { $ref: 'https://example.com/n' } } };
    expect(schemaProblem(ours, { b: 1 })).toBe('unusable');
  });

  it('matches patterns in linear time', () => {
    const schema = { properties: { a: { type: 'string', pattern: '^(a+)+$' } } };
    const before = performance.now();
    expect(schemaProblem(schema, { a: `${'a'.repeat(5_000)}!` })).toMatchObject({ path: 'a' });
    expect(performance.now() - before).toBeLessThan(1_000);
  });

  it('that is too large is unusable', () => {
    expect(schemaProblem({ type: 'object', description: 'x'.repeat(300_000) }, {})).toBe('unusable');
  });
});
