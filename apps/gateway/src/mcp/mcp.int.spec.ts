import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type ExchangeHandler, type ExchangeServer, serveExchanges, type TunnelledRequest, wasCancelled } from '@isthmus/messaging';
import { LIMITS } from '@isthmus/protocol';
import { testConnection, until } from '@isthmus/testing';
import { type Host, startHost } from '../fake-host.suite.js';

let host: Host;
let replica: ExchangeServer;
let tunnel: Awaited<ReturnType<typeof testConnection>>;
let seen: { request: TunnelledRequest; passport: string; signal: AbortSignal }[];
let handle: ExchangeHandler;

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const echo: ExchangeHandler = async ({ body }) => ({
  status: 200,
  headers: [['content-type', 'application/json']],
  body: body as Uint8Array,
});

beforeAll(async () => {
  host = await startHost();
  tunnel = await testConnection();
  replica = await serveExchanges(tunnel, 'default', (request, context) => {
    seen.push({ request, passport: context.passport, signal: context.signal });
    return handle(request, context);
  });
});
beforeEach(() => {
  seen = [];
  handle = echo;
});
afterAll(async () => {
  await replica.drain(100);
  await tunnel.close();
  await host.close();
});

const BODY = '{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"text":"\\u0000 is text here"}}';
type Answer = { jsonrpc: string; id: unknown; error: { code: number; message: string; data?: Record<string, unknown> } };
const post = (body: string = BODY, headers: Record<string, string> = {}, more: RequestInit = {}) =>
  fetch(`${host.url}/mcp`, {
    method: 'POST',
    headers: host.as('primary', { 'content-type': 'application/json', ...headers }),
    body,
    ...more,
  });
async function expectRefusal(response: Response, status: number, code = -32600): Promise<Answer> {
  const answer = (await response.json()) as Answer;
  expect([response.status, answer.jsonrpc, answer.error.code]).toEqual([status, '2.0', code]);
  expect(seen).toEqual([]);
  return answer;
}
/** For headers that fetch does not let one set. */
const asHost = (headers: readonly string[]): Promise<number> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(host.url);
    const request = httpRequest({
      hostname,
      port,
      method: 'POST',
      path: '/mcp',
      headers: ['Content-Length', String(BODY.length), 'Content-Type', 'application/json', 'Authorization', 'Bearer primary', ...headers],
      setHost: false,
    });
    request.once('response', (response) => resolve(response.resume().statusCode ?? 0)).once('error', reject);
    request.end(BODY);
  });

describe('the MCP mount', () => {
  it('carries a request as it came to a replica, with the passport instead of the credential', async () => {
    const response = await post(BODY, {
      'mcp-method': 'server/discover',
      'mcp-name': 'a, b',
      accept: 'application/json, text/event-stream',
    });
    expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([200, 'application/json', BODY]);
    const [{ request, passport }] = seen as [(typeof seen)[number]];
    const headers = new Map(request.headers);
    expect(Buffer.from(request.body as Uint8Array).toString()).toBe(BODY);
    expect([request.method, request.url, headers.get('mcp-method'), headers.get('mcp-name')]).toEqual([
      'POST',
      '/mcp',
      'server/discover',
      'a, b',
    ]);
    expect(headers.has('authorization')).toBe(false);
    expect(passport.split('.')).toHaveLength(3);
  });

  it('passes on what the replica answers, status and all', async () => {
    handle = async () => ({ status: 202, headers: [['x-a', 'b']] });
    const response = await post();
    expect([response.status, response.headers.get('x-a'), await response.text()]).toEqual([202, 'b', '']);
    handle = async () => new Response('{"jsonrpc":"2.0"}', { status: 404, headers: { 'content-type': 'application/json' } });
    expect((await post()).status).toBe(404);
  });

  it('streams as it comes', async () => {
    let send: (text: string | undefined) => void = () => undefined;
    handle = async () =>
      new Response(
        new ReadableStream({
          start: (controller) => {
            send = (text) => (text === undefined ? controller.close() : controller.enqueue(encode(text)));
          },
        }),
        { headers: { 'content-type': 'text/event-stream' } },
      );
    const response = await post();
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    for (const text of ['data: 1\n\n', 'data: 2\n\n']) {
      send(text);
      expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe(text);
    }
    send(undefined);
    expect((await reader.read()).done).toBe(true);
  });

  it('carries more than a window without losing a byte', async () => {
    const big = Buffer.from(Uint8Array.from({ length: 2_000_000 }, (_, at) => (at * 31) % 251));
    handle = async () => new Response(new Blob([big]).stream(), { headers: { 'content-type': 'application/octet-stream' } });
    expect(Buffer.from(await (await post()).arrayBuffer()).equals(big)).toBe(true);
  });

  it.each(['before the answer', 'in the middle of it'])('tells the replica when its client goes away %s', async (when) => {
    handle = async (_, { signal }) => {
      if (when === 'before the answer') await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return new Response(new ReadableStream({ start: (controller) => controller.enqueue(encode('data: 1\n\n')) }), {
        headers: { 'content-type': 'text/event-stream' },
      });
    };
    const leave = new AbortController();
    const asking = post(BODY, {}, { signal: leave.signal }).catch(() => undefined);
    await until(() => seen.length === 1);
    if (when === 'in the middle of it') await asking;
    leave.abort();
    await asking;
    await until(() => wasCancelled((seen[0] as (typeof seen)[number]).signal));
  });

  it('asks for a credential', async () => {
    const response = await fetch(`${host.url}/mcp`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: BODY });
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/);
    await expectRefusal(response, 401);
  });

  it.each(['GET', 'DELETE', 'PUT', 'PATCH'])('refuses %s', async (method) => {
    const response = await fetch(`${host.url}/mcp`, { method, headers: host.as('primary') });
    expect(response.headers.get('allow')).toBe('POST');
    await expectRefusal(response, 405);
  });

  it('refuses what is not JSON, or too much', async () => {
    await expectRefusal(await post('x', { 'content-type': 'text/plain' }), 415);
    await expectRefusal(await fetch(`${host.url}/mcp`, { method: 'POST', headers: host.as('primary') }), 415);
    await expectRefusal(await post(`"${'x'.repeat(LIMITS.maxRequestBodyBytes)}"`), 413);
  });

  it('leaves the meaning of the body to the replica', async () => {
    expect(await (await post('{"broken')).text()).toBe('{"broken');
  });

  it.each([
    ['Host', 'evil.example.com'],
    ['Host', '127.0.0.1:1', 'Origin', 'https://evil.example.com'],
    ['Host', 'localhost', 'Origin', 'null'],
  ])('refuses %j', async (...headers) => {
    expect(await asHost(headers)).toBe(403);
    expect(seen).toEqual([]);
  });

  it('serves local names and the public one, also to their pages', async () => {
    expect(await asHost(['Host', 'localhost:1', 'Origin', 'http://localhost:5173'])).toBe(200);
    expect(await asHost(['Host', 'wop.test', 'Origin', 'http://wop.test'])).toBe(200);
  });

  it('refuses headers that stand twice', async () => {
    expect(await asHost(['Host', 'localhost', 'Mcp-Method', 'tools/list', 'Mcp-Method', 'tools/call'])).toBe(400);
    expect(await asHost(['Host', 'localhost', 'MCP-Protocol-Version', '2026-07-28, 2025-11-25'])).toBe(400);
    expect(seen).toEqual([]);
  });

  it('is 503 while no replica is there, and says when to come back', async () => {
    await replica.drain(0);
    const response = await post();
    expect(response.headers.get('retry-after')).toBe('1');
    await expectRefusal(response, 503, -32603);
    replica = await serveExchanges(tunnel, 'default', echo);
    expect((await post()).status).toBe(200);
  });
});
