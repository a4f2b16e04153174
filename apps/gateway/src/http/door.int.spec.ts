import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LIMITS, type Route, ROUTES } from '@isthmus/protocol';
import { until } from '@isthmus/testing';
import { type Host, startHost } from '../fake-host.suite.js';

let host: Host;
beforeAll(async () => {
  host = await startHost();
});
afterAll(() => host.close());

const SAMPLE: Readonly<Record<string, string>> = {
  runId: '0190a000-0000-7000-8000-ffffffffffff',
  nodeId: 'gate',
  workflowId: 'w',
  serverId: 's',
  token: 'abc.def',
};
const BODIES: Readonly<Record<string, unknown>> = {
  createRun: { workflowId: 'w' },
  resolveInterrupt: { resumeValue: true },
  resolveInterruptByToken: { resumeValue: true },
  bulkCancelRuns: { runIds: ['x'] },
  forkRun: { mode: 'replay' },
  createWebhook: { url: 'https://example.com/hook', events: ['run.completed'] },
  putWorkflow: { name: 'w', nodes: [{ id: 'n', typeId: 'core.noop' }] },
  putMount: { url: 'http://localhost/mcp' },
};
const path = (route: Route): string => route.path.replace(/\{(\w+)\}/g, (_, name: string) => SAMPLE[name] ?? 'x');

const all = Object.entries(ROUTES as Readonly<Record<string, Route>>);
const guarded = all.filter(([, route]) => route.access !== 'public');
const withBody = all.filter(([, route]) => route.body);

type Sent = { readonly route: Route; readonly key?: string; readonly headers?: Record<string, string>; readonly body?: string | Buffer };
async function send({ route, key, headers = {}, body }: Sent) {
  const response = await fetch(`${host.url}${path(route)}`, {
    method: route.method,
    headers: { ...(key && host.as(key)), ...headers },
    ...(body !== undefined && { body }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: text ? (JSON.parse(text) as { error?: string; message?: string; details?: Record<string, unknown> }) : undefined,
  };
}
const json = { 'content-type': 'application/json' };

/** As the bytes are, for what no client library would send. */
async function sendRaw(lines: readonly string[], body = ''): Promise<{ status: number; head: string; body: string }> {
  const { hostname, port } = new URL(host.url);
  const socket = connect(Number(port), hostname);
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  const [head = '', ...rest] = Buffer.concat(chunks).toString().split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), head: head.toLowerCase(), body: rest.join('\r\n\r\n') };
}
/** The one shape of a refusal: nothing else at the top, no trace of the inside. */
function expectEnvelope(text: string, code: string): void {
  const body = JSON.parse(text) as Record<string, unknown>;
  expect(body).toMatchObject({ error: code, message: expect.stringMatching(/\w/) });
  expect(Object.keys(body).filter((name) => !['error', 'message', 'details'].includes(name))).toEqual([]);
  expect(text).not.toMatch(/ at .*\.(ts|js):|node_modules|select |insert into/i);
}

describe('every route', () => {
  it.each(guarded)('%s asks for a credential', async (_, route) => {
    const { status, headers, text } = await send({ route, ...(route.body && { headers: json, body: '{}' }) });
    expect(status).toBe(401);
    expect(headers.get('www-authenticate')).toBe('Bearer realm="isthmus"');
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expectEnvelope(text, 'unauthenticated');
  });

  it.each(guarded)('%s refuses a credential nobody holds, and repeats it nowhere', async (_, route) => {
    const { status, headers, text } = await send({ route, key: 'canary-secret-token' });
    expect(status).toBe(401);
    expect(text + JSON.stringify([...headers])).not.toContain('canary');
  });

  it.each(guarded)('%s refuses a credential without its scope, before the body is looked at', async (_, route) => {
    const { status, body, text } = await send({ route, key: 'none', ...(route.body && { headers: json, body: '{"broken' }) });
    expect(status).toBe(403);
    expectEnvelope(text, 'forbidden');
    expect(body?.details).toEqual({ scopeRequired: (route.access as readonly string[]).join(' ') });
  });

  it('reports what it denied to the audit chain', async () => {
    await send({ route: ROUTES.createRun, key: 'low' });
    await until(() => host.audited.some(({ facts }) => facts['principal'] === 'low'));
    expect(host.audited.find(({ facts }) => facts['principal'] === 'low')).toMatchObject({
      type: 'authorization.decided',
      tenant: 'tenant-a',
      facts: { action: 'runs:create', resource: 'POST /v1/runs', allowed: false, reason: 'scope-missing' },
    });
  });

  it.each(all)('%s answers OPTIONS with what it allows, and a wrong method with 405', async (_, route) => {
    const options = await fetch(`${host.url}${path(route)}`, { method: 'OPTIONS' });
    expect([options.status, await options.text()]).toEqual([204, '']);
    expect(options.headers.get('allow')).toContain(route.method);
    const patch = await fetch(`${host.url}${path(route)}`, { method: 'PATCH', headers: json, body: '{}' });
    expect(patch.status).toBe(405);
    expect(patch.headers.get('allow')).toContain(route.method);
    expectEnvelope(await patch.text(), 'method_not_allowed');
  });

  it.each(guarded)('%s is 400 without its version', async (_, route) => {
    const response = await fetch(`${host.url}${path(route).replace('/v1', '')}`, { method: route.method, headers: host.as('primary') });
    expect(response.status).toBe(400);
    expectEnvelope(await response.text(), 'validation_error');
  });
});

const BAD: readonly (readonly [string, { headers?: Record<string, string>; body: string | Buffer }, number, string])[] = [
  ['half a document', { body: '{"a":' }, 400, 'validation_error'],
  ['a list', { body: '[]' }, 400, 'validation_error'],
  ['a text', { body: '"x"' }, 400, 'validation_error'],
  ['null', { body: 'null' }, 400, 'validation_error'],
  ['broken UTF-8', { body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) }, 400, 'validation_error'],
  ['U+0000', { body: '{"a":"\\u0000"}' }, 400, 'validation_error'],
  ['half of a surrogate pair', { body: '{"a":"\\udc00"}' }, 400, 'validation_error'],
  ['a prototype', { body: '{"__proto__":{"a":1}}' }, 400, 'validation_error'],
  ['a number beyond all numbers', { body: '{"a":1e999}' }, 400, 'validation_error'],
  ['a hundred thousand levels', { body: `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}` }, 400, 'validation_error'],
  ['too many bytes', { body: `{"a":"${'x'.repeat(LIMITS.maxRequestBodyBytes)}"}` }, 413, 'payload_too_large'],
  ['another type', { headers: { 'content-type': 'text/plain' }, body: '{}' }, 415, 'unsupported_media_type'],
  ['a form', { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'a=1' }, 415, 'unsupported_media_type'],
  ['no type anyone knows', { headers: { 'content-type': 'nonsense' }, body: '{}' }, 415, 'unsupported_media_type'],
  ['another charset', { headers: { 'content-type': 'application/json; charset=latin1' }, body: '{}' }, 415, 'unsupported_media_type'],
  [
    'compression',
    { headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' }, body: '{}' },
    415,
    'unsupported_media_type',
  ],
];

describe.each(withBody)('the body of %s', (name, route) => {
  it.each(BAD)('may not be %s', async (_, { headers = json, body }, status, code) => {
    const answer = await send({ route, key: 'primary', headers, body });
    expect([answer.status, answer.body?.error]).toEqual([status, code]);
    expectEnvelope(answer.text, code);
  });

  it('may not have members it does not know', async () => {
    const answer = await send({ route, key: 'primary', headers: json, body: JSON.stringify({ ...(BODIES[name] as object), surprise: 1 }) });
    expect([answer.status, answer.body?.error]).toEqual([400, 'validation_error']);
    expect(answer.body?.details?.['issues']).toEqual([expect.objectContaining({ message: expect.stringContaining('surprise') })]);
  });
});

describe('headers', () => {
  const request = (...lines: string[]): string[] => [
    'POST /v1/runs HTTP/1.1',
    'Host: localhost',
    'Connection: close',
    'Content-Type: application/json',
    'Content-Length: 2',
    ...lines,
  ];

  it.each([
    ['a second credential', request('Authorization: Bearer primary', 'authorization: Bearer low')],
    ['two credentials in one', request('Authorization: Bearer primary, Bearer low')],
    ['a second key', request('Authorization: Bearer primary', 'Idempotency-Key: a', 'Idempotency-Key: b')],
    ['two keys in one', request('Authorization: Bearer primary', 'Idempotency-Key: a, b')],
    ['a second type', request('Authorization: Bearer primary', 'Content-Type: text/plain')],
    ['a second host', request('Host: other', 'Authorization: Bearer primary')],
    ['a second length', request('Content-Length: 3', 'Authorization: Bearer primary')],
    ['a length and chunks', request('Transfer-Encoding: chunked', 'Authorization: Bearer primary')],
  ])('refuse %s', async (_, lines) => {
    const before = host.asked.length;
    const { status, body } = await sendRaw(lines, '{}');
    expect(status).toBe(400);
    expectEnvelope(body, 'validation_error');
    expect(host.asked.length).toBe(before);
  });

  it('larger than the host takes are 431, in the envelope', async () => {
    const { status, body, head } = await sendRaw(['GET /v1/runs HTTP/1.1', 'Host: localhost', `X-Big: ${'x'.repeat(20_000)}`]);
    expect(status).toBe(431);
    expect(head).toContain('content-type: application/json; charset=utf-8');
    expectEnvelope(body, 'headers_too_large');
  });

  it.each([
    ['no HTTP at all', ['nonsense']],
    ['a header that is none', ['GET / HTTP/1.1', 'Host: localhost', 'bad header : x']],
    ['no host', ['GET /v1/openapi.json HTTP/1.1', 'Connection: close']],
  ])('that are %s are 400, in the envelope', async (_, lines) => {
    const { status, body } = await sendRaw(lines);
    expect(status).toBe(400);
    expectEnvelope(body, 'validation_error');
  });
});

describe('what HTTP leaves open', () => {
  it('ignores an expectation it does not know, and a wish to speak something else', async () => {
    const lines = (extra: string) => ['GET /v1/openapi.json HTTP/1.1', 'Host: localhost', 'Connection: close', extra];
    expect((await sendRaw(lines('Expect: 200-maybe'))).status).toBe(200);
    expect((await sendRaw(lines('Upgrade: websocket'))).status).toBe(200);
  });

  it('answers HEAD like GET, without the body', async () => {
    const response = await fetch(`${host.url}/v1/openapi.json`, { method: 'HEAD' });
    expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
      200,
      'application/json; charset=utf-8',
      '',
    ]);
  });
});

describe('addresses', () => {
  const get = async (target: string) =>
    sendRaw([`GET ${target} HTTP/1.1`, 'Host: localhost', 'Connection: close', 'Authorization: Bearer primary']);

  it.each([
    ['/v1/runs/not-a-run', 404, 'not_found'],
    ['/v1/runs/%00', 404, 'not_found'],
    ['/v1/runs/%F0%9F%98%80', 404, 'not_found'],
    ['/v1/runs/..%2f..%2fetc', 404, 'not_found'],
    [`/v1/runs/${'x'.repeat(5_000)}`, 404, 'not_found'],
    ['/v1/runs/%', 400, 'validation_error'],
    ['/v1/runs/%c3%28', 400, 'validation_error'],
    ['/v1/runs//events', 404, 'not_found'],
    ['/v1/workflows/a%20b', 404, 'not_found'],
    ['/v1/workflows/constructor', 404, 'not_found'],
    ['/v1/host/isthmus/runs?limit=0', 400, 'validation_error'],
    ['/v1/host/isthmus/runs?limit=1&limit=2', 400, 'validation_error'],
    ['/v1/host/isthmus/runs?status=nonsense', 400, 'validation_error'],
    ['/v1/host/isthmus/runs?tag=%00', 400, 'validation_error'],
    ['/v1/host/isthmus/runs?__proto__=x', 400, 'validation_error'],
    ['/constructor', 404, 'not_found'],
    ['*', 404, 'not_found'],
  ])('%s is %d %s', async (target, status, code) => {
    const answer = await get(target);
    expect(answer.status).toBe(status);
    expectEnvelope(answer.body, code);
  });
});

describe('authz out of reach', () => {
  it('is 503 with Retry-After, discloses nothing, and lets a known credential go on only while rights are known', async () => {
    await send({ route: ROUTES.getRun, key: 'primary' });
    const stranger = await fetch(`${host.url}/v1/runs/${SAMPLE['runId']}`, { headers: host.as('primary') });
    expect(stranger.status).toBe(404);
    host.loseAuthz();
    try {
      const { status, headers, text } = await send({ route: ROUTES.getRun, key: 'unknown' });
      expect(status).toBe(503);
      expect(headers.get('retry-after')).toBe('1');
      expectEnvelope(text, 'service_unavailable');
      await until(async () => (await send({ route: ROUTES.getRun, key: 'primary' })).status === 503, { timeoutMs: 12_000 });
    } finally {
      host.findAuthz();
    }
    await until(async () => (await send({ route: ROUTES.getRun, key: 'primary' })).status === 404, { timeoutMs: 5_000 });
  }, 30_000);
});

describe('a passport', () => {
  it('is asked for once and used by many, until the rights of its tenant change', async () => {
    host.keys.set('busy', { ...(host.keys.get('tenant-b') as NonNullable<ReturnType<Host['keys']['get']>>), tenant: 'tenant-d' });
    await until(async () => {
      const before = host.counts.authenticate;
      await Promise.all(Array.from({ length: 20 }, () => send({ route: ROUTES.getRun, key: 'busy' })));
      return host.counts.authenticate === before;
    });
    host.revoke('tenant-d');
    await until(async () => (await send({ route: ROUTES.getRun, key: 'busy' })).status === 401, { timeoutMs: 2_000 });
  });
});
