import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { WopError, webhooks } from '@isthmus/protocol';
import { answer } from '@isthmus/testing';
import { type Host, startHost } from '../fake-host.suite.js';

let host: Host;
const stops: (() => void)[] = [];
const asked: unknown[] = [];
beforeAll(async () => {
  host = await startHost();
  stops.push(
    answer(host.nats, webhooks.registerWebhook, (input) => {
      asked.push(input);
      return { webhookId: 'wh_1', secret: 'whsec_x', secretFingerprint: '01234567', replayed: input.idempotency !== undefined };
    }),
    answer(host.nats, webhooks.removeWebhook, ({ webhookId }) => {
      if (webhookId !== 'wh_1') throw new WopError('subscription_not_found', 'There is no such webhook.');
      return {};
    }),
  );
  await host.nats.flush();
});
afterAll(async () => {
  for (const stop of stops) stop();
  await host.close();
});

const WISH = { url: 'https://hooks.example.com/', events: ['run.completed'] };
const send = async (method: string, path: string, body?: unknown, { key = 'primary', ...more }: Record<string, string> = {}) => {
  const response = await fetch(`${host.url}/v1/webhooks${path}`, {
    method,
    headers: host.as(key, { ...more, ...(body !== undefined && { 'content-type': 'application/json' }) }),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, replay: response.headers.get('openwop-idempotent-replay'), body: text ? JSON.parse(text) : undefined };
};

describe('registering a webhook', () => {
  it('is 201 with its id, and its secret for once', async () => {
    expect(await send('POST', '', { ...WISH, tags: ['gold'], tenantId: 'tenant-a' })).toEqual({
      status: 201,
      replay: 'false',
      body: { webhookId: 'wh_1', secret: 'whsec_x', secretFingerprint: '01234567' },
    });
    expect(asked.at(-1)).toEqual({ spec: { ...WISH, tags: ['gold'] } });
  });

  it("takes the credential's own tenant or workspace as tenantId, and 403 is the answer to any other", async () => {
    expect(await send('POST', '', { ...WISH, tenantId: 'tenant-a-workspace' })).toMatchObject({ status: 201 });
    expect(await send('POST', '', { ...WISH, tenantId: 'tenant-b' })).toMatchObject({ status: 403, body: { error: 'forbidden' } });
  });

  it('passes an idempotency key on, and marks a replay', async () => {
    expect(await send('POST', '', WISH, { 'idempotency-key': 'k' })).toMatchObject({ status: 201, replay: 'true' });
    expect(asked.at(-1)).toMatchObject({ idempotency: { endpoint: 'POST /v1/webhooks' } });
  });

  it.each([
    ['no url', { events: ['run.completed'] }],
    ['a url that is none', { ...WISH, url: 'not a url' }],
    ['no events', { url: WISH.url }],
    ['an empty list of events', { ...WISH, events: [] }],
    ['an event nobody knows', { ...WISH, events: ['run.exploded'] }],
    ['a member nobody knows', { ...WISH, colour: 'red' }],
    ['a secret that is too short to be one', { ...WISH, secret: 'short' }],
  ])('is 400 with %s', async (_, body) => {
    expect(await send('POST', '', body)).toMatchObject({ status: 400, body: { error: 'validation_error' } });
  });

  it('needs webhooks:manage', async () => {
    expect(await send('POST', '', WISH, { key: 'low' })).toMatchObject({
      status: 403,
      body: { error: 'forbidden', details: { scopeRequired: 'webhooks:manage' } },
    });
  });
});

describe('removing a webhook', () => {
  it('is 204, or 404 when there is none here', async () => {
    expect(await send('DELETE', '/wh_1')).toMatchObject({ status: 204, body: undefined });
    expect(await send('DELETE', '/wh_1?tenantId=tenant-a')).toMatchObject({ status: 204 });
    for (const path of ['/wh_2', '/wh_1?tenantId=tenant-b', '/no%20such%20thing'])
      expect(await send('DELETE', path)).toMatchObject({ status: 404, body: { error: 'subscription_not_found' } });
  });
});
