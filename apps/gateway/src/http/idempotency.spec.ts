import { ROUTES } from '@isthmus/protocol';
import { describe, expect, it } from '@jest/globals';
import { idempotencyOf } from './idempotency.js';

const route = ROUTES.cancelRun;
const of = (key: string | undefined, params: unknown, body: unknown) => idempotencyOf(route, key, { params, body });

describe('Idempotency-Key', () => {
  it('is optional', () => {
    expect(of(undefined, {}, {})).toBeUndefined();
  });

  it('is 1 to 255 characters', () => {
    expect(() => of('', {}, {})).toThrow(expect.objectContaining({ code: 'idempotency_key_invalid' }));
    expect(() => of('x'.repeat(256), {}, {})).toThrow(expect.objectContaining({ code: 'idempotency_key_invalid' }));
    expect(of('x'.repeat(255), {}, {})).toBeDefined();
  });

  it('names the routed template, and does not carry the key', () => {
    const made = of('my-key', { runId: 'r' }, {});
    expect(made?.endpoint).toBe('POST /v1/runs/{runId}/cancel');
    expect(JSON.stringify(made)).not.toContain('my-key');
  });

  it('digests the meaning of a body: neither order nor spelling of members matters, values and path parameters do', () => {
    const digest = (params: unknown, body: unknown) => of('k', params, body)?.digest;
    expect(digest({ runId: 'r' }, { a: 1, b: 2 })).toBe(digest({ runId: 'r' }, { b: 2.0, a: 1 }));
    expect(digest({ runId: 'r' }, { a: 1 })).not.toBe(digest({ runId: 'r' }, { a: 2 }));
    expect(digest({ runId: 'r' }, { a: 1 })).not.toBe(digest({ runId: 's' }, { a: 1 }));
    expect(digest({ runId: 'r' }, undefined)).not.toBe(digest({ runId: 'r' }, {}));
  });
});
