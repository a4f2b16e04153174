import { authz, HEADERS, WopError } from '@isthmus/protocol';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import { answer } from './answer.js';
import { testConnection } from './nats.js';

describe('a fake service', () => {
  let connection: NatsConnection;
  beforeAll(async () => {
    connection = await testConnection();
  });
  afterAll(() => connection.close());
  const ask = async (data: unknown, passport?: string) => {
    const head = headers();
    if (passport) head.set(HEADERS.passport, passport);
    return (
      await connection.request(authz.recordAudit.subject, JSON.stringify({ id: '7', data }), { timeout: 2_000, headers: head })
    ).json();
  };
  const entry = { type: 'x', at: 'now', facts: {} };

  it('answers like the real one, and sees the passport', async () => {
    const stop = answer(connection, authz.recordAudit, ({ entries }, { passport }) => ({
      recorded: passport === 'p' ? entries.length : -1,
    }));
    expect(await ask({ entries: [entry] }, 'p')).toEqual({ id: '7', response: { recorded: 1 }, isDisposed: true });
    stop();
  });

  it('answers errors as envelopes', async () => {
    const stop = answer(connection, authz.recordAudit, () => {
      throw new WopError('service_unavailable', 'Not now.');
    });
    expect(await ask({ entries: [entry] })).toMatchObject({ err: { error: 'service_unavailable', message: 'Not now.' } });
    stop();
  });

  it('cannot drift from the contract, in what it takes or in what it gives', async () => {
    const stop = answer(connection, authz.recordAudit, () => ({ recorded: 'many' }) as never);
    expect(await ask({ entries: [] })).toMatchObject({ err: { error: 'internal_error' } });
    expect(await ask({ entries: [entry] })).toMatchObject({ err: { error: 'internal_error' } });
    stop();
  });
});
