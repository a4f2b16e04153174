import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '@isthmus/testing';
import { Inflight } from '../http/inflight.js';
import { type Host, openStream, startHost } from '../fake-host.suite.js';

let host: Host;
beforeAll(async () => {
  host = await startHost();
});
afterAll(() => host.close());

const post = async (path: string, body: unknown, headers: Record<string, string> = {}, key = 'primary') => {
  const response = await fetch(`${host.url}${path}`, {
    method: 'POST',
    headers: host.as(key, { 'content-type': 'application/json', ...headers }),
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as Record<string, unknown> };
};
const create = (body: object = {}, headers: Record<string, string> = {}) => post('/v1/runs', { workflowId: 'w', ...body }, headers);

describe('POST /v1/runs', () => {
  it('answers 201 with the state a run begins in and links under the public address', async () => {
    const { status, headers, body } = await create({ inputs: { a: 1 }, tags: ['t'] });
    expect(status).toBe(201);
    const base = `http://wop.test/v1/runs/${String(body['runId'])}`;
    expect(body).toEqual({ runId: expect.any(String), status: 'running', eventsUrl: `${base}/events`, statusUrl: base });
    expect(headers.get('openwop-idempotent-replay')).toBe('false');
    expect(host.asked.at(-1)?.input).toMatchObject({ workflowId: 'w', inputs: { a: 1 }, tags: ['t'], transport: 'rest', trust: 'trusted' });
  });

  it('never takes its links from the Host header', async () => {
    const { text } = await create({}, { 'x-forwarded-host': 'evil.example.com', forwarded: 'host=evil.example.com' });
    expect(text).not.toContain('evil');
  });

  it('repeats its answer to the byte for the same key, although the run has gone on', async () => {
    const first = await create({ inputs: { a: 1, b: 2 } }, { 'idempotency-key': 'one' });
    const again = await post('/v1/runs', { inputs: { b: 2, a: 1 }, workflowId: 'w' }, { 'idempotency-key': 'one' });
    expect(again.text).toBe(first.text);
    expect([first.headers.get('openwop-idempotent-replay'), again.headers.get('openwop-idempotent-replay')]).toEqual(['false', 'true']);
    expect(again.status).toBe(201);
    const [one, two] = host.asked.slice(-2).map(({ input }) => (input as { idempotency: { digest: string } }).idempotency);
    expect(one).toEqual(two);
    expect(JSON.stringify(one)).not.toContain('"one"');
  });

  it.each(['', 'x'.repeat(256)])('refuses a key of the wrong length', async (key) => {
    const { status, body } = await create({}, { 'idempotency-key': key });
    expect([status, body['error']]).toEqual([400, 'idempotency_key_invalid']);
  });

  it('lets a body name only its own tenant and workspace', async () => {
    expect((await create({ tenantId: 'tenant-a', scopeId: 'tenant-a-workspace' })).status).toBe(201);
    for (const foreign of [{ tenantId: 'tenant-b' }, { scopeId: 'other' }]) {
      const { status, body } = await create(foreign);
      expect([status, body['error']]).toEqual([403, 'forbidden']);
    }
  });

  it('goes on in the trace of its caller', async () => {
    await create({}, { traceparent: '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01' });
    expect(host.asked.at(-1)?.traceparent).toMatch(/^00-0123456789abcdef0123456789abcdef-[0-9a-f]{16}-0[01]$/);
  });
});

describe('a run', () => {
  it('is told by its snapshot', async () => {
    const runId = host.makeRun();
    const response = await fetch(`${host.url}/v1/runs/${runId}`, { headers: host.as('primary') });
    expect([response.status, await response.json()]).toEqual([200, expect.objectContaining({ runId, status: 'running' })]);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect((await fetch(`${host.url}/v1/runs/${runId}`, { headers: host.as('tenant-b') })).status).toBe(404);
  });

  it('is not sent again to who has it as it stands', async () => {
    const runId = host.makeRun();
    const get = (headers: Record<string, string> = {}) => fetch(`${host.url}/v1/runs/${runId}`, { headers: host.as('primary', headers) });
    const etag = (await get()).headers.get('etag') ?? '';
    expect(etag).toMatch(/^"0-[\w-]+"$/);
    const known = await get({ 'if-none-match': etag });
    expect([known.status, await known.text(), known.headers.get('etag')]).toEqual([304, '', etag]);
    host.append(runId, ['node.started']);
    const moved = await get({ 'if-none-match': etag });
    expect(moved.status).toBe(200);
    expect(moved.headers.get('etag')).toMatch(/^"1-/);
  });
});

describe('a host with all the work in flight it takes', () => {
  it('starts nothing, says when to come again, and goes on when a stream ends', async () => {
    const small = await host.gateway({ MAX_INFLIGHT: '2' });
    try {
      const runId = host.makeRun();
      const streams = await Promise.all([1, 2, 3].map(() => openStream(`${small.url}/v1/runs/${runId}/events`, host.as('primary'))));
      await until(() => streams.every(({ frames }) => frames.length === 1));
      const wish = (path: string, body: object) =>
        fetch(`${small.url}${path}`, {
          method: 'POST',
          headers: host.as('primary', { 'content-type': 'application/json' }),
          body: JSON.stringify(body),
        });
      for (const [path, body] of [
        ['/v1/runs', { workflowId: 'w' }],
        [`/v1/runs/${runId}:fork`, { mode: 'replay' }],
      ] as const) {
        const response = await wish(path, body);
        expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
        expect(await response.json()).toMatchObject({ error: 'service_unavailable', details: { retryAfter: 1 } });
      }
      expect((await fetch(`${small.url}/v1/runs/${runId}`, { headers: host.as('primary') })).status).toBe(200);
      expect((await wish(`/v1/runs/${runId}/cancel`, {})).status).toBe(200);
      await Promise.all(streams.map(({ ended }) => ended));
      await until(() => small.app.get(Inflight).held === 0);
      expect((await wish('/v1/runs', { workflowId: 'w' })).status).toBe(201);
      expect(small.app.get(Inflight).held).toBe(0);
    } finally {
      await small.app.close();
    }
  });

  it('gives a place back when its client leaves, and when a stream was refused', async () => {
    const runId = host.makeRun();
    const inflight = host.app.get(Inflight);
    const { leave, ended, frames } = await openStream(`${host.url}/v1/runs/${runId}/events`, host.as('primary'));
    await until(() => frames.length === 1);
    expect(inflight.held).toBe(1);
    leave();
    await ended;
    await until(() => inflight.held === 0);
    expect((await openStream(`${host.url}/v1/runs/${runId}/events`, host.as('tenant-b'))).response.status).toBe(404);
    expect(inflight.held).toBe(0);
  });
});
