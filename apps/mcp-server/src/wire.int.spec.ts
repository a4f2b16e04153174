import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createMcpHandler, Server } from '@modelcontextprotocol/server';
import { callerOf } from '@isthmus/testing';
import { done } from './engine.suite.js';
import { raw, type RawAnswer, request, startMount, type TestMount } from './mount.suite.js';

let mount: TestMount;
let replica: { stop(): Promise<void> };
beforeAll(async () => {
  mount = await startMount();
  mount.engine.expose('echo', (inputs) => done(inputs), { description: 'Says it again', inputSchema: SCHEMA });
  replica = await mount.replica();
}, 30_000);
afterAll(() => mount.stop());

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const SCHEMA = { type: 'object' as const, properties: { text: { type: 'string' }, region: { type: 'string', 'x-mcp-header': 'Region' } } };

/** The SDK's own server with the same tool, as the measure of what a client may expect. */
const sdk = createMcpHandler(
  () => {
    const server = new Server({ name: 'isthmus', version: '0.0.0' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', () => ({
      tools: [{ name: 'echo', description: 'Says it again', inputSchema: SCHEMA as never }],
    }));
    server.setRequestHandler('tools/call', () => ({ content: [] }));
    return server;
  },
  { legacy: 'reject' },
);
async function asTheSdk(body: unknown, headers: Record<string, string>, method = 'POST'): Promise<RawAnswer> {
  const init = method === 'POST' ? { body: typeof body === 'string' ? body : JSON.stringify(body) } : {};
  const all = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers };
  const response = await sdk.fetch(new Request('http://mount/mcp', { method, headers: all, ...init }));
  const text = await response.text();
  return { status: response.status, text, json: text === '' ? undefined : JSON.parse(text) };
}
const essence = ({ status, json }: RawAnswer) => ({
  status,
  code: json?.error?.code,
  supported: json?.error?.data?.supported,
  requested: json?.error?.data?.requested,
});

const list = request('tools/list');
const call = request('tools/call', { name: 'echo', arguments: { text: 'hi' } });
const without = (headers: Record<string, string>, name: string) =>
  Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));
const withMeta = (meta: Record<string, unknown> | undefined, method = 'tools/list') => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params: meta ? { _meta: meta } : {},
});
const legacy = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const V = { [VERSION]: '2026-07-28' };
const C = { [CAPABILITIES]: {} };
const asked = (version: string) => ({ ...list.headers, 'mcp-protocol-version': version });

describe('the wire', () => {
  it.each<[string, unknown, Record<string, string>]>([
    ['a list', list.body, list.headers],
    ['a list asked for with Accept: application/json alone', list.body, { ...list.headers, accept: 'application/json' }],
    ['a call', call.body, call.headers],
    ['discover', request('server/discover').body, request('server/discover').headers],
    ['broken JSON', '{', list.headers],
    ['a batch', [list.body], list.headers],
    ['an empty batch', [], list.headers],
    ['a number', '5', list.headers],
    ['no jsonrpc', { id: 1, method: 'tools/list', params: list.body['params'] }, list.headers],
    ['an id of null', { ...list.body, id: null }, list.headers],
    ['an id that is a fraction', { ...list.body, id: 1.5 }, list.headers],
    ['params in a list', { ...list.body, params: [] }, list.headers],
    ['no params', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, list.headers],
    ['no _meta', withMeta(undefined), list.headers],
    ['no version in _meta', withMeta(C), list.headers],
    ['no capabilities in _meta', withMeta(V), list.headers],
    ['capabilities that are no object', withMeta({ ...V, [CAPABILITIES]: 'x' }), list.headers],
    ['a client info that is no object', withMeta({ ...V, ...C, 'io.modelcontextprotocol/clientInfo': 5 }), list.headers],
    ['no version header', list.body, without(list.headers, 'mcp-protocol-version')],
    ['no method header', list.body, without(list.headers, 'mcp-method')],
    ['no name header', call.body, without(call.headers, 'mcp-name')],
    ['another name in the header', call.body, { ...call.headers, 'mcp-name': 'other' }],
    ['another method in the header', list.body, { ...list.headers, 'mcp-method': 'prompts/get' }],
    ['another version in the header', list.body, asked('2025-11-25')],
    ['a name header on a method without a name', list.body, { ...list.headers, 'mcp-name': 'echo' }],
    ['a revision to come', withMeta({ ...C, [VERSION]: '2027-01-01' }), asked('2027-01-01')],
    ['an earlier revision', withMeta({ ...C, [VERSION]: '2025-11-25' }), asked('2025-11-25')],
    ['an earlier revision in the header alone', legacy('tools/list', {}), asked('2025-11-25')],
    ['no revision at all', legacy('tools/list', {}), {}],
    ['initialize', legacy('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } }), {}],
    ['initialize of this revision', request('initialize').body, request('initialize').headers],
    ['ping', request('ping').body, request('ping').headers],
    ['logging/setLevel', request('logging/setLevel').body, request('logging/setLevel').headers],
    ['resources/list, which is not declared', request('resources/list').body, request('resources/list').headers],
    ['an unknown method', request('foo/bar').body, request('foo/bar').headers],
    ['an unknown method without its header', request('foo/bar').body, without(request('foo/bar').headers, 'mcp-method')],
    ['a method named like a member of Object', request('constructor').body, request('constructor').headers],
    [
      'a notification',
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
      list.headers['mcp-method'] ? { 'mcp-protocol-version': '2026-07-28' } : {},
    ],
    ['a notification without headers', { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }, {}],
    [
      'a notification of another method than its header',
      { jsonrpc: '2.0', method: 'notifications/foo', params: { _meta: V } },
      list.headers,
    ],
    ['a response', { jsonrpc: '2.0', id: 1, result: {} }, list.headers],
    ['a call without a name', request('tools/call').body, request('tools/call').headers],
    ['arguments in a list', request('tools/call', { name: 'echo', arguments: [] }).body, call.headers],
  ])('answers as the SDK does to %s', async (_, body, headers) => {
    expect(essence(await raw(mount.url, body, headers))).toEqual(essence(await asTheSdk(body, headers)));
  });

  it('takes JSON and nothing else', async () => {
    expect((await raw(mount.url, list.body, { ...list.headers, 'content-type': 'text/plain' })).status).toBe(415);
  });

  it.each(['GET', 'DELETE', 'PUT'])('has no %s', async (method) => {
    const response = await fetch(mount.url, { method, headers: list.headers });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('POST');
  });

  it('lists what the SDK would list, member for member', async () => {
    const [ours, theirs] = [await raw(mount.url, list.body, list.headers), await asTheSdk(list.body, list.headers)];
    expect(ours.json).toEqual({ ...theirs.json, result: { ...theirs.json.result, _meta: ours.json.result._meta } });
    expect(ours.json.result._meta['io.modelcontextprotocol/serverInfo']).toMatchObject({ name: 'isthmus' });
  });

  it('looks at headers that differ before it looks at the version', async () => {
    const future = withMeta({ ...C, [VERSION]: '2027-01-01' }, 'tools/call');
    const named = { ...future, params: { ...future.params, name: 'echo', arguments: { region: 'eu' } } };
    const headers = { ...call.headers, 'mcp-protocol-version': '2027-01-01' };
    expect((await raw(mount.url, named, { ...headers, 'mcp-name': 'other' })).json.error.code).toBe(-32020);
    expect((await raw(mount.url, named, { ...headers, 'mcp-param-region': 'us' })).json.error.code).toBe(-32020);
    expect((await raw(mount.url, named, { ...headers, 'mcp-param-region': 'eu' })).json.error.code).toBe(-32022);
  });

  it('wants an argument in its header when the tool says so', async () => {
    const eu = request('tools/call', { name: 'echo', arguments: { region: 'eü' } });
    expect(await raw(mount.url, eu.body, eu.headers)).toMatchObject({ status: 400, json: { id: 1, error: { code: -32020 } } });
    expect(await raw(mount.url, eu.body, { ...eu.headers, 'mcp-param-region': '=?base64?ZcO8?=' })).toMatchObject({
      status: 200,
      json: { result: { resultType: 'complete' } },
    });
    expect((await raw(mount.url, eu.body, { ...eu.headers, 'mcp-param-region': '=?base64?ZcO8?' })).status).toBe(400);
  });

  it('refuses a body that is too long, also in pieces', async () => {
    const long = JSON.stringify({ ...list.body, params: { ...list.body['params'], filler: 'x'.repeat(500_000) } });
    expect((await raw(mount.url, long, list.headers)).status).toBe(413);
  });

  it('echoes the id as it came', async () => {
    expect((await raw(mount.url, { ...list.body, id: 'ü"\\' }, list.headers)).json.id).toBe('ü"\\');
    expect((await raw(mount.url, { ...list.body, id: -7 }, list.headers)).json.id).toBe(-7);
  });

  it('is not there for a passport that is not valid', async () => {
    mount.as(callerOf(), { expiresInMs: -1_000 });
    expect((await raw(mount.url, list.body, list.headers)).status).toBe(401);
    mount.as(callerOf());
  });

  it('is 503 when no replica is there', async () => {
    await replica.stop();
    expect((await raw(mount.url, list.body, list.headers)).status).toBe(503);
  });
});
