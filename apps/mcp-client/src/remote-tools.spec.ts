import type { ServerResponse } from 'node:http';
import { installPropagation, runInContext } from '@isthmus/chassis';
import type { RecordedRequest } from '@isthmus/testing';
import { describe, expect, it } from '@jest/globals';
import { errorBody, idOf, json, onCall, paramsOf, peer, resultOf } from './peer-answers.suite.js';
import { callOf, errorOf, rig, targetOf } from './rig.suite.js';

installPropagation();

describe('a call of a remote tool', () => {
  it('gives the result as the server sent it, and says in which revision', async () => {
    const sent = {
      resultType: 'complete',
      content: [{ type: 'text', text: 'x', 'vendor/odd': { deep: [1] } }],
      odd: true,
      _meta: { a: 1 },
    };
    const { url } = await peer({ intercept: onCall((request, response) => json(response, resultOf(request, sent))) });
    const { resultType: _, ...result } = sent;
    expect(await rig().tools.call(targetOf(url), callOf('echo', { text: 'x' }))).toEqual({
      is: 'complete',
      isError: false,
      negotiatedVersion: '2026-07-28',
      result,
    });
  });

  it('carries its logical id as header and in _meta, with the trace it belongs to', async () => {
    const remote = await peer();
    const call = callOf('echo', { text: 'x' });
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await runInContext({ traceparent, tracestate: 'vendor=1' }, () => rig().tools.call(targetOf(remote.url), call));
    const [request] = remote.calls('echo');
    expect(request?.headers).toMatchObject({
      'idempotency-key': call.invocationId,
      'mcp-method': 'tools/call',
      'mcp-name': 'echo',
      'mcp-protocol-version': '2026-07-28',
    });
    expect(paramsOf(request)['_meta']).toMatchObject({
      traceparent,
      tracestate: 'vendor=1',
      'dev.isthmus/logicalInvocationId': call.invocationId,
      'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
    });
    for (const other of remote.requests.filter(({ method }) => method !== 'tools/call'))
      expect(other.headers['idempotency-key']).toBeUndefined();
  });

  it('is complete when the tool fails: that is an answer', async () => {
    const { url } = await peer();
    expect(await rig().tools.call(targetOf(url), callOf('fail'))).toMatchObject({ is: 'complete', isError: true });
  });

  it('shares one connection and one list among calls of a mount', async () => {
    const remote = await peer();
    const { tools } = rig();
    await Promise.all(Array.from({ length: 5 }, () => tools.call(targetOf(remote.url), callOf('echo', { text: 'x' }))));
    expect(remote.requests.filter(({ method }) => method === 'server/discover')).toHaveLength(1);
    await tools.call(targetOf(remote.url, {}, { tenant: 'tenant-b' }), callOf('echo', { text: 'x' }));
    expect(remote.requests.filter(({ method }) => method === 'server/discover')).toHaveLength(2);
  });

  it('goes out for no tool that the server does not list or the mount does not allow', async () => {
    const remote = await peer();
    const { tools } = rig();
    expect(await errorOf(tools.call(targetOf(remote.url), callOf('nope')))).toMatchObject({ code: 'mcp_tool_not_found' });
    const before = remote.requests.length;
    expect(await errorOf(tools.call(targetOf(remote.url, { toolAllowlist: ['fail'] }), callOf('echo', { text: 'x' })))).toMatchObject({
      code: 'mcp_tool_not_found',
    });
    expect(remote.requests).toHaveLength(before);
    expect(remote.calls('nope')).toEqual([]);
  });

  it('lists the tools as they are', async () => {
    const { url } = await peer();
    const { tools, negotiatedVersion } = await rig().tools.list(targetOf(url), 5_000);
    expect(negotiatedVersion).toBe('2026-07-28');
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['big', 'echo', 'fail', 'needs_input', 'slow']));
    expect(tools.find(({ name }) => name === 'echo')).toMatchObject({
      annotations: { idempotentHint: true },
      inputSchema: { type: 'object' },
    });
  });
});

describe('a tool that asks', () => {
  it('is answered in a new request that echoes its state, until it is done', async () => {
    const remote = await peer();
    const { tools } = rig();
    const call = callOf('needs_input');
    const asked = await tools.call(targetOf(remote.url), call);
    expect(asked).toMatchObject({ is: 'input_required', inputRequests: { 'name-1': { method: 'elicitation/create' } } });
    if (asked.is !== 'input_required') throw new Error('unreachable');
    const inputResponses = { 'name-1': { action: 'accept', content: { name: 'Ada' } } };
    const done = await tools.call(targetOf(remote.url), { ...call, round: 1, requestState: asked.requestState, inputResponses });
    expect(done).toMatchObject({ is: 'complete', result: { content: [{ text: 'hello Ada' }] } });
    const [first, second] = remote.calls('needs_input');
    expect(second && idOf(second)).not.toBe(first && idOf(first));
    expect(second?.headers['idempotency-key']).toBe(call.invocationId);
  });

  it.each([
    ['of JSON', '{"a": 1,\n"b":"\\u0000"}'],
    ['of every kind', `\u0000\u0001\u2028\u2029\ud800 é 💥 "\\/ =?base64?x?= \t`],
    ['of nothing', ''],
    ['long', 'x'.repeat(100_000)],
  ])('gets its state back byte for byte: a state %s', async (_, requestState) => {
    const remote = await peer({
      intercept: onCall((request, response, nth) =>
        json(
          response,
          resultOf(
            request,
            nth === 0 ? { resultType: 'input_required', requestState, inputRequests: {} } : { resultType: 'complete', content: [] },
          ),
        ),
      ),
    });
    const { tools } = rig();
    const call = callOf('echo', { text: 'x' });
    const asked = await tools.call(targetOf(remote.url), call);
    expect(asked).toEqual({ is: 'input_required', inputRequests: {}, requestState, negotiatedVersion: '2026-07-28' });
    await tools.call(targetOf(remote.url), { ...call, round: 1, requestState, inputResponses: {} });
    expect(paramsOf(remote.calls('echo')[1])).toMatchObject({ name: 'echo', arguments: { text: 'x' }, requestState, inputResponses: {} });
  });

  it.each([
    ['sampling', { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }],
    ['a visit of its page', { method: 'elicitation/create', params: { mode: 'url', message: 'x', url: 'https://evil.example' } }],
    ['nonsense', 'please'],
  ])('fails when it asks for %s, which it was not offered', async (_, request) => {
    const { url } = await peer({
      intercept: onCall((call, response) =>
        json(response, resultOf(call, { resultType: 'input_required', inputRequests: { a: request } })),
      ),
    });
    expect(await errorOf(rig().tools.call(targetOf(url), callOf('echo', { text: 'x' })))).toMatchObject({
      code: 'mcp_tool_invocation_failed',
      details: { reason: 'undeclared_input_request' },
    });
  });
});

describe('an answer that is an error', () => {
  it('is told by its code and a little text without credentials, and is not tried again', async () => {
    const remote = await peer({
      intercept: onCall((request, response) => json(response, errorBody(request, -32000, `no: Bearer abcdef.ghi sk-${'1'.repeat(20)}`))),
    });
    const error = await errorOf(rig().tools.call(targetOf(remote.url, { repeatUnknown: 'always' }), callOf('echo', { text: 'x' })));
    expect(error).toMatchObject({ code: 'mcp_tool_invocation_failed', details: { code: -32000 } });
    expect(error.message).toContain('no: [redacted]');
    expect(error.message).not.toContain('sk-1');
    expect(remote.calls('echo')).toHaveLength(1);
  });

  it('is a missing tool when the list agrees, else refused arguments', async () => {
    let isListed = true;
    const remote = await peer({
      intercept: (request, response) => {
        if (request.method === 'tools/call') json(response, errorBody(request, -32602, 'no'));
        else if (request.method === 'tools/list')
          json(
            response,
            resultOf(request, {
              resultType: 'complete',
              ttlMs: 60_000,
              cacheScope: 'private',
              tools: isListed ? [{ name: 'echo', inputSchema: { type: 'object' } }] : [],
            }),
          );
        else return false;
        return true;
      },
    });
    const { tools } = rig();
    expect(await errorOf(tools.call(targetOf(remote.url), callOf('echo')))).toMatchObject({
      code: 'mcp_tool_invocation_failed',
      details: { code: -32602 },
    });
    isListed = false;
    expect(await errorOf(tools.call(targetOf(remote.url), callOf('echo')))).toMatchObject({ code: 'mcp_tool_not_found' });
  });

  it.each<[string, (request: RecordedRequest, response: ServerResponse) => void]>([
    ['not JSON', (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc"')],
    ['a page', (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>hello')],
    ['no result', (request, response) => json(response, resultOf(request, { resultType: 'complete', content: 'x' }))],
    ['a task', (request, response) => json(response, resultOf(request, { resultType: 'task', taskId: 'x' }))],
    ['without a type', (request, response) => json(response, resultOf(request, { content: [] }))],
    [
      'deep',
      (request, response) =>
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(
            `{"jsonrpc":"2.0","id":${idOf(request)},"result":{"resultType":"complete","content":[],"structuredContent":${'['.repeat(50_000)}${']'.repeat(50_000)}}}`,
          ),
    ],
  ])('is a failed invocation when it is %s', async (_, answer) => {
    const { url } = await peer({ intercept: onCall(answer) });
    expect(await errorOf(rig().tools.call(targetOf(url), callOf('echo', { text: 'x' })))).toMatchObject({
      code: 'mcp_tool_invocation_failed',
      details: { reason: 'invalid_answer' },
    });
  });
});

describe('a large answer', () => {
  it('arrives up to the limit and is refused above it', async () => {
    const { url } = await peer();
    const { tools } = rig();
    expect(await tools.call(targetOf(url), callOf('big', { bytes: 390_000 }))).toMatchObject({ is: 'complete' });
    for (const bytes of [420_000, 5_000_000])
      expect(await errorOf(tools.call(targetOf(url), callOf('big', { bytes })))).toMatchObject({
        code: 'mcp_tool_invocation_failed',
        details: { reason: 'result_too_large', limitBytes: 409_600 },
      });
  });

  it.each(['application/json', 'text/event-stream'])('is not read to its end: %s without end', async (type) => {
    let written = 0;
    const { url } = await peer({
      intercept: onCall((_, response) => {
        response.writeHead(200, { 'content-type': type }).write(type === 'application/json' ? '{"jsonrpc":"2.0","x":"' : 'data: ');
        const chunk = 'x'.repeat(64 * 1_024);
        const pump = (): void => {
          while (!response.destroyed && written < 200e6) {
            written += chunk.length;
            if (!response.write(chunk)) return void response.once('drain', pump);
          }
        };
        pump();
      }),
    });
    const before = process.memoryUsage().rss;
    expect(await errorOf(rig().tools.call(targetOf(url), callOf('echo', { text: 'x' })))).toMatchObject({
      details: { reason: 'result_too_large' },
    });
    expect(written).toBeLessThan(20e6);
    expect(process.memoryUsage().rss - before).toBeLessThan(100e6);
  });
});

describe('headers that a tool wants', () => {
  it('are made from the arguments, also after the server changed its mind', async () => {
    const listed = (header: string) => ({
      resultType: 'complete',
      ttlMs: 60_000,
      cacheScope: 'private',
      tools: [
        {
          name: 'echo',
          inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': header } } },
          outputSchema: { type: 'object', properties: { x: { pattern: '(' } } },
        },
      ],
    });
    let header = 'Region';
    const remote = await peer({
      intercept: (request, response) => {
        if (request.method === 'tools/list') json(response, resultOf(request, listed(header)));
        else if (request.method !== 'tools/call') return false;
        else if (request.headers[`mcp-param-${header.toLowerCase()}`] === undefined)
          json(response, errorBody(request, -32020, 'mismatch'), 400);
        else json(response, resultOf(request, { resultType: 'complete', content: [] }));
        return true;
      },
    });
    const { tools } = rig();
    await tools.call(targetOf(remote.url), callOf('echo', { region: 'Hé' }));
    expect(remote.calls('echo')[0]?.headers['mcp-param-region']).toBe('=?base64?SMOp?=');
    header = 'Area';
    await tools.call(targetOf(remote.url), callOf('echo', { region: 'eu' }));
    expect(remote.calls('echo').at(-1)?.headers['mcp-param-area']).toBe('eu');
    expect(remote.calls('echo')).toHaveLength(3);
  });
});
