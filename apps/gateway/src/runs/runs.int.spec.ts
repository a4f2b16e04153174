import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Host, startHost } from '../fake-host.suite.js';

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

  it('is cancelled, with or without a body, and says so when it had ended before', async () => {
    const runId = host.makeRun();
    const bare = await fetch(`${host.url}/v1/runs/${runId}/cancel`, { method: 'POST', headers: host.as('primary') });
    expect([bare.status, await bare.json()]).toEqual([200, { runId, status: 'cancelled' }]);
    const again = await post(`/v1/runs/${runId}/cancel`, { reason: 'enough' });
    expect(again.body).toEqual({ runId, status: 'cancelled', alreadyTerminal: true });
    expect(again.headers.get('openwop-idempotent-replay')).toBe('false');
  });
});
