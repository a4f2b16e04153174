import { NotFoundException, PayloadTooLargeException } from '@nestjs/common';
import { WopError } from '@isthmus/protocol';
import { describe, expect, it } from '@jest/globals';
import { problemOf } from './problem.js';

const of = (thrown: unknown, hadCredential = false) => problemOf(thrown, { hadCredential, correlationId: () => 'correlation' });
const fastifyError = (statusCode?: number) => Object.assign(new Error('raw text of a library'), { name: 'FastifyError', statusCode });

describe('errors as they leave', () => {
  it('keeps what the table knows', () => {
    const { status, error } = of(new WopError('run_terminal', 'The run has ended.', { runStatus: 'completed' }));
    expect([status, error.toEnvelope()]).toEqual([
      409,
      { error: 'run_terminal', message: 'The run has ended.', details: { runStatus: 'completed' } },
    ]);
  });

  it.each([
    [new PayloadTooLargeException(), 413, 'payload_too_large'],
    [new NotFoundException(), 404, 'not_found'],
    [fastifyError(415), 415, 'unsupported_media_type'],
    [fastifyError(400), 400, 'validation_error'],
    [fastifyError(418), 400, 'validation_error'],
    [fastifyError(undefined), 500, 'internal_error'],
    [new TypeError('column "secret" does not exist'), 500, 'internal_error'],
    ['a string', 500, 'internal_error'],
  ])('translates %p', (thrown, status, code) => {
    const problem = of(thrown);
    expect([problem.status, problem.error.code]).toEqual([status, code]);
  });

  it('says nothing of a fault but where to look it up', () => {
    const { error } = of(new TypeError('column "secret" does not exist'));
    expect(error.toEnvelope()).toEqual({
      error: 'internal_error',
      message: expect.not.stringContaining('secret'),
      details: { correlationId: 'correlation' },
    });
  });

  it('demands a bearer token with every 401, and says when the one that came was no good', () => {
    expect(of(new WopError('unauthenticated', 'x')).headers['www-authenticate']).toBe('Bearer realm="isthmus"');
    expect(of(new WopError('unauthenticated', 'x'), true).headers['www-authenticate']).toContain('error="invalid_token"');
    expect(of(new WopError('key_revoked', 'x'), true).headers['www-authenticate']).toContain('error="invalid_token"');
    expect(of(new WopError('forbidden', 'x'), true).headers['www-authenticate']).toBeUndefined();
  });

  it('tells when to come back on 503 and 429, the header equal to the details', () => {
    const { headers, error } = of(new WopError('service_unavailable', 'x', { retryAfter: 3, sent: true }));
    expect(headers['retry-after']).toBe('3');
    expect(error.details).toEqual({ retryAfter: 3, correlationId: 'correlation' });
    expect(of(new WopError('rate_limited', 'x')).headers['retry-after']).toBe('1');
  });

  it('lists what a 405 allows', () => {
    expect(of(new WopError('method_not_allowed', 'x', { allow: ['GET', 'HEAD'] })).headers['allow']).toBe('GET, HEAD');
  });
});
