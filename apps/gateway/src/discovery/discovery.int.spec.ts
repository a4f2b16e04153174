import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Health } from '@isthmus/chassis';
import { engine } from '@isthmus/protocol';
import { answer, until } from '@isthmus/testing';
import { type Host, startHost } from '../fake-host.suite.js';

let host: Host;
beforeAll(async () => {
  host = await startHost({ DISCOVERY_REFRESH_MS: '50' });
  await until(async () => (await fetch(`${host.url}/.well-known/openwop`)).ok);
});
afterAll(() => host.close());

const get = (headers: Record<string, string> = {}, base = host.url) => fetch(`${base}/.well-known/openwop`, { headers });

describe('the discovery document', () => {
  it('joins what every service says of itself', async () => {
    const response = await get();
    expect(await response.json()).toMatchObject({
      protocolVersion: '1.0',
      supportedEnvelopes: [],
      schemaVersions: {},
      limits: { clarificationRounds: 3, schemaRounds: 2, envelopesPerTurn: 5 },
      implementation: { name: 'isthmus' },
      restTransport: { conditionalRunGet: true },
      debugBundle: { supported: true },
      production: { backpressure: { supported: true, inflightCap: 1_000, retryAfterSeconds: 1 } },
      mcp: { serverUrls: ['http://wop.test/mcp'] },
      engine: { supported: true },
      authz: { supported: true },
      'mcp-client': { supported: true },
      'mcp-server': { supported: true },
    });
    expect(response.headers.get('cache-control')).toBe('public, max-age=300');
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  it('needs no credential, and minds none', async () => {
    expect((await get()).status).toBe(200);
    expect((await get({ authorization: 'Bearer nobody' })).status).toBe(200);
    expect((await get({ authorization: 'nonsense' })).status).toBe(200);
  });

  it('is not sent again to who has it', async () => {
    const etag = (await get()).headers.get('etag') ?? '';
    expect(etag).toMatch(/^"[\w-]+"$/);
    for (const known of [etag, `"other", ${etag}`, `W/${etag}`, '*']) {
      const response = await get({ 'if-none-match': known });
      expect([response.status, await response.text(), response.headers.get('etag')]).toEqual([304, '', etag]);
    }
    expect((await get({ 'if-none-match': '"other"' })).status).toBe(200);
  });

  it('is equal on every gateway', async () => {
    const other = await host.gateway();
    try {
      await until(async () => (await get({}, other.url)).ok);
      expect(await (await get({}, other.url)).text()).toBe(await (await get()).text());
    } finally {
      await other.app.close();
    }
  });

  it('takes in what a service says anew, and keeps its last word while it is away', async () => {
    host.stopDescribing('engine');
    const stop = answer(host.nats, engine.describe, () => ({ service: 'engine', version: '2', discovery: { fixtures: ['one'] } }));
    // Whoever was asked as it stopped is waited for until its deadline.
    await until(async () => ((await (await get()).json()) as { fixtures?: unknown }).fixtures, { timeoutMs: 20_000 });
    stop();
    expect((await get()).status).toBe(200);
    expect(await (await get()).json()).toMatchObject({ fixtures: ['one'] });
  }, 30_000);

  it('is 503, and the gateway not ready, before every service was heard', async () => {
    const late = await host.gateway();
    try {
      const response = await get({}, late.url);
      expect([response.status, response.headers.get('retry-after'), ((await response.json()) as { error: string }).error]).toEqual([
        503,
        '1',
        'service_unavailable',
      ]);
      expect((await late.app.get(Health).ready()).checks).toMatchObject({ discovery: false });
      const stop = answer(host.nats, engine.describe, () => ({ service: 'engine', version: '2', discovery: {} }));
      await until(async () => (await late.app.get(Health).ready()).ready, { timeoutMs: 10_000 });
      stop();
    } finally {
      await late.app.close();
    }
  });
});

describe('the OpenAPI document', () => {
  it('is there for anyone, and cacheable', async () => {
    const response = await fetch(`${host.url}/v1/openapi.json`);
    expect(((await response.json()) as { openapi: string }).openapi).toBe('3.1.0');
    const again = await fetch(`${host.url}/v1/openapi.json`, { headers: { 'if-none-match': response.headers.get('etag') ?? '' } });
    expect(again.status).toBe(304);
  });
});
