import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { answer, callerOf, until } from '@isthmus/testing';
import { authz, type Caller, mcpServer } from '@isthmus/protocol';
import pg from 'pg';
import { approval, clarification, done, type TestRun } from './engine.suite.js';
import { raw, type RawAnswer, request, startMount, type TestMount } from './mount.suite.js';

jest.setTimeout(30_000);
let mount: TestMount;
let clients: Client[];

beforeAll(async () => {
  mount = await startMount();
  // Together, for they make the keys of requestState between them.
  await Promise.all([mount.replica(), mount.replica(), mount.replica({ MCP_SERVER_POOLS: 'impatient', SLOW_RUN_MS: '0' })]);
});
beforeEach(() => {
  clients = [];
  mount.engine.reset();
  mount.use('default');
  mount.as(callerOf());
});
afterEach(async () => {
  await Promise.all(clients.map((client) => client.close()));
});
afterAll(() => mount.stop());

const call = (
  name: string,
  params: Record<string, unknown> = {},
  { headers = {}, meta = {} }: { headers?: Record<string, string>; meta?: Record<string, unknown> } = {},
): Promise<RawAnswer> => {
  const wanted = request('tools/call', { name, ...params }, meta);
  return raw(mount.url, wanted.body, { ...wanted.headers, ...headers });
};
const listed = async (): Promise<string[]> => {
  const { body, headers } = request('tools/list');
  return (await raw(mount.url, body, headers)).json.result.tools.map((tool: { name: string }) => tool.name);
};
const onlyRun = (): TestRun => {
  const [run] = [...mount.engine.runs.values()];
  if (!run || mount.engine.runs.size !== 1) throw new Error(`there are ${mount.engine.runs.size} runs`);
  return run;
};
const firstRun = async (): Promise<TestRun> => {
  await until(() => mount.engine.runs.size > 0);
  return onlyRun();
};
/** Who may use tools but is otherwise nobody. */
const visitor = (rest: Partial<Caller> = {}): Caller => callerOf({ scopes: ['runs:create', 'runs:read', 'approvals:respond'], ...rest });
const working = { is: 'working', status: 'running' } as const;
const gated = (): void =>
  mount.engine.expose('deploy', (inputs, answers) =>
    answers['gate'] === undefined ? { is: 'ask', interrupts: [approval('gate')] } : done({ inputs, decision: answers['gate'] }),
  );

async function sdkClient(elicit?: (message: string) => object): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    { capabilities: elicit ? { elicitation: {} } : {}, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  if (elicit) client.setRequestHandler('elicitation/create', async ({ params }) => elicit(params.message) as never);
  await client.connect(new StreamableHTTPClientTransport(mount.url));
  clients.push(client);
  return client;
}

describe('the official client', () => {
  it('discovers, lists and calls', async () => {
    mount.engine.expose('echo', (inputs) => done(inputs), {
      description: 'Says it again',
      inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    });
    const client = await sdkClient();
    expect(client.getDiscoverResult()).toMatchObject({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} } });
    expect((await client.listTools()).tools).toMatchObject([{ name: 'echo', description: 'Says it again' }]);
    expect(await client.callTool({ name: 'echo', arguments: { text: 'hi' } })).toMatchObject({
      structuredContent: { text: 'hi' },
      content: [{ type: 'text', text: '{"text":"hi"}' }],
    });
    expect(onlyRun().created).toMatchObject({ workflowId: 'wf-echo', inputs: { text: 'hi' }, transport: 'mcp', trust: 'untrusted' });
  });

  it('answers questions by itself, whichever replica it finds', async () => {
    mount.engine.expose('trip', (_inputs, answers) => {
      if (answers['where'] === undefined)
        return { is: 'ask', interrupts: [clarification('where', [{ id: 'city', question: 'Where to?' }])] };
      if (answers['gate'] === undefined) return { is: 'ask', interrupts: [approval('gate')] };
      return done({ where: answers['where'], gate: answers['gate'] });
    });
    const client = await sdkClient((message) => ({
      action: 'accept',
      content: message.startsWith('Where') ? { city: 'Oslo' } : { action: 'accept' },
    }));
    const results = await Promise.all(Array.from({ length: 10 }, () => client.callTool({ name: 'trip' })));
    for (const result of results)
      expect(result.structuredContent).toEqual({ where: { action: 'accept', answers: { city: 'Oslo' } }, gate: { action: 'accept' } });
    expect(mount.engine.runs.size).toBe(10);
  });

  it('that cannot show a form is told so, and leaves no run behind that waits for it', async () => {
    gated();
    const client = await sdkClient();
    await expect(client.callTool({ name: 'deploy' })).rejects.toThrow();
    expect(await call('deploy', {}, { meta: { 'io.modelcontextprotocol/clientCapabilities': {} } })).toMatchObject({
      status: 400,
      json: { error: { code: -32021, data: { requiredCapabilities: { elicitation: { form: {} } } } } },
    });
    for (const run of mount.engine.runs.values()) expect(run.outcome).toMatchObject({ is: 'cancelled' });
  });
});

describe('tools', () => {
  it('are seen by the next request once they are registered, and by their tenant alone', async () => {
    mount.engine.expose('b', () => done({}));
    expect(await listed()).toEqual(['b']);
    mount.engine.expose('a', () => done({}));
    mount.engine.expose('theirs', () => done({}), {}, { tenant: 'tenant-b' });
    expect(await listed()).toEqual(['a', 'b']);
    mount.as(callerOf({ tenant: 'tenant-b' }));
    expect(await listed()).toEqual(['theirs']);
    expect(await call('a')).toMatchObject({ status: 200, json: { error: { code: -32602 } } });
  });

  it('of another mount are not those of this one', async () => {
    mount.engine.expose('here', () => done({}));
    mount.engine.expose('there', () => done({}), {}, { mount: 'other' });
    const { body, headers } = request('tools/list');
    expect((await raw(`${mount.url}/other`, body, headers)).json.result.tools).toMatchObject([{ name: 'there' }]);
    expect(await listed()).toEqual(['here']);
  });

  it('are the same bytes on every replica', async () => {
    for (const name of ['c', 'B', 'a']) mount.engine.expose(name, () => done({}));
    const { body, headers } = request('tools/list');
    const texts = await Promise.all(Array.from({ length: 20 }, async () => (await raw(mount.url, body, headers)).text));
    expect(new Set(texts).size).toBe(1);
  });

  it.each([[['runs:read']], [['runs:create']], [[]]])(
    'are not for a caller with only %j, in the words of a tool that does not exist',
    async (scopes) => {
      mount.engine.expose('echo', (inputs) => done(inputs));
      mount.as(callerOf({ scopes: scopes as Caller['scopes'] }));
      expect(await listed()).toEqual([]);
      const [forbidden, unknown] = [await call('echo'), await call('nope')];
      expect(forbidden.json.error).toEqual(unknown.json.error);
      expect(forbidden).toMatchObject({ status: 200, json: { error: { code: -32602 } } });
      expect(mount.engine.runs.size).toBe(0);
    },
  );

  it('read the exposures once per request at most, and share a read with those that came later', async () => {
    mount.engine.expose('echo', (inputs) => done(inputs));
    await call('echo');
    expect(mount.engine.lists).toBe(1);
  });

  it('are never an empty list because the engine is away', async () => {
    mount.engine.expose('echo', (inputs) => done(inputs));
    mount.engine.stop();
    const { body, headers } = request('tools/list');
    expect(await raw(mount.url, body, headers)).toMatchObject({ status: 503, json: { id: 1, error: { code: -32603 } } });
    await mount.engine.start();
  });
});

describe('a call', () => {
  it('with arguments that do not fit makes no run, and its refusal repeats no value', async () => {
    mount.engine.expose('echo', (inputs) => done(inputs), {
      inputSchema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false },
    });
    for (const given of [{}, { n: 'sk-secret' }, { n: 1, 'sk-secret': 1 }, [], 'x', null, 5]) {
      const refused = await call('echo', { arguments: given });
      expect(refused).toMatchObject({ status: 200, json: { error: { code: -32602 } } });
      expect(refused.text).not.toContain('sk-secret');
    }
    expect((await call('echo', { arguments: { n: 'x' } })).json.error).toMatchObject({
      message: expect.stringContaining('"n" must be integer') as unknown,
      data: { issues: [{ path: 'n' }] },
    });
    expect(mount.engine.runs.size).toBe(0);
  });

  it('whose run fails or is cancelled is a result with isError', async () => {
    mount.engine.expose('fail', () => ({ is: 'failed', error: { code: 'node_failed', message: 'No luck.' } }));
    mount.engine.expose('stop', () => ({ is: 'cancelled' }));
    expect(await call('fail')).toMatchObject({
      status: 200,
      json: { result: { resultType: 'complete', isError: true, content: [{ text: 'node_failed: No luck.' }] } },
    });
    expect(await call('stop')).toMatchObject({ json: { result: { isError: true, _meta: { 'dev.isthmus/code': 'tool_canceled' } } } });
  });

  it('waits for its run on the bell', async () => {
    mount.engine.expose('slow', () => working);
    const answered = call('slow');
    const run = await firstRun();
    mount.engine.move(run, done({ late: true }));
    expect((await answered).json.result.structuredContent).toEqual({ late: true });
  });

  it('of a run that takes too long gets a state to ask again with, as often as it likes', async () => {
    mount.use('impatient');
    mount.engine.expose('slow', () => working);
    const first = (await call('slow', { arguments: { a: 1 } })).json.result;
    expect(first).toMatchObject({ resultType: 'input_required', requestState: expect.any(String) as unknown });
    expect(first.inputRequests).toBeUndefined();
    for (let again = 0; again < 2; again++) {
      expect((await call('slow', { arguments: { a: 1 }, requestState: first.requestState })).json.result).toMatchObject({
        resultType: 'input_required',
      });
    }
    mount.engine.move(onlyRun(), done({ late: true }));
    expect((await call('slow', { arguments: { a: 1 }, requestState: first.requestState })).json.result.structuredContent).toEqual({
      late: true,
    });
  });

  it('that waits while its replica stops is told to ask another one', async () => {
    const leaving = await mount.replica({ MCP_SERVER_POOLS: 'leaving' });
    mount.use('leaving');
    mount.engine.expose('slow', () => working);
    const answered = call('slow');
    const run = await firstRun();
    await leaving.stop();
    const { requestState } = (await answered).json.result;
    expect(run.cancelled).toEqual([]);
    mount.use('default');
    mount.engine.move(run, done({ late: true }));
    expect((await call('slow', { requestState })).json.result.structuredContent).toEqual({ late: true });
  });

  it('goes on in the trace that its _meta names', async () => {
    mount.engine.expose('echo', (inputs) => done(inputs));
    await call(
      'echo',
      {},
      {
        meta: { traceparent: `00-${'a'.repeat(32)}-${'1'.repeat(16)}-01` },
        headers: { traceparent: `00-${'b'.repeat(32)}-${'1'.repeat(16)}-01` },
      },
    );
    expect(onlyRun().traceparent).toContain('a'.repeat(32));
  });

  it('asks authz for a fresh passport when its own is about to end', async () => {
    mount.as(visitor(), { expiresInMs: 4_000 });
    mount.engine.expose('echo', (inputs) => done(inputs));
    let delegated = 0;
    const stop = answer(mount.connection, authz.delegate, async (input) => {
      delegated++;
      return {
        token: await mount.issuer.passport(visitor()),
        caller: visitor({ principal: 'principal' in input ? input.principal : '' }),
        expiresInMs: 60_000,
      };
    });
    await mount.connection.flush();
    for (let again = 0; again < 8 && delegated === 0; again++) expect((await call('echo')).status).toBe(200);
    expect(delegated).toBeGreaterThan(0);
    stop();
  });
});

describe('a client that goes away', () => {
  const leave = async (headers: Record<string, string> = {}): Promise<TestRun> => {
    const gone = new AbortController();
    const wanted = request('tools/call', { name: 'slow' });
    const answered = raw(mount.url, wanted.body, { ...wanted.headers, ...headers }, { signal: gone.signal });
    const run = await firstRun();
    gone.abort();
    await expect(answered).rejects.toThrow();
    return run;
  };

  it('cancels the run that its request owns, without any right to cancel runs', async () => {
    mount.as(visitor());
    mount.engine.expose('slow', () => working);
    const run = await leave();
    await until(() => run.cancelled.length > 0);
    expect(run.cancelled).toEqual([{ reason: 'mcp-request-cancelled', by: 'service:mcp-server' }]);
  });

  it('and named a key finds its run again', async () => {
    mount.engine.expose('slow', () => working);
    const run = await leave({ 'idempotency-key': 'k1' });
    mount.engine.move(run, done({ kept: true }));
    expect((await call('slow', {}, { meta: { 'dev.isthmus/idempotencyKey': 'k1' } })).json.result.structuredContent).toEqual({
      kept: true,
    });
    expect(run.cancelled).toEqual([]);
    expect(mount.engine.runs.size).toBe(1);
  });
});

describe('an idempotency key', () => {
  it('makes a repeat the same call, and another call under it an error', async () => {
    gated();
    const headers = { 'idempotency-key': 'k1' };
    const first = await call('deploy', { arguments: { env: 'prod', n: 1 } }, { headers });
    const again = await call('deploy', { arguments: { n: 1, env: 'prod' } }, { headers });
    expect(first.json.result.inputRequests).toEqual(again.json.result.inputRequests);
    expect(onlyRun().created.idempotency).toMatchObject({ endpoint: 'mcp:tools/call:default:deploy' });
    expect(JSON.stringify(onlyRun().created)).not.toContain('k1');
    expect(await call('deploy', { arguments: { env: 'other' } }, { headers })).toMatchObject({
      json: { error: { code: -32602, data: { reason: 'idempotency_key_mismatch' } } },
    });
    expect(await call('deploy', {}, { headers: { 'idempotency-key': 'k'.repeat(256) } })).toMatchObject({
      json: { error: { code: -32602, data: { reason: 'idempotency_key_invalid' } } },
    });
  });

  it('recovers an answer that was lost after its state was used', async () => {
    gated();
    const headers = { 'idempotency-key': 'k1' };
    const { requestState, inputRequests } = (await call('deploy', {}, { headers })).json.result;
    const inputResponses = answerAll(inputRequests, { action: 'accept', content: { action: 'accept' } });
    const lost = await call('deploy', { requestState, inputResponses });
    expect((await call('deploy', { requestState, inputResponses })).json.error.data).toEqual({ reason: 'request_state_used' });
    expect((await call('deploy', {}, { headers })).json.result.structuredContent).toEqual(lost.json.result.structuredContent);
  });
});

const answerAll = (inputRequests: object, response: object) => Object.fromEntries(Object.keys(inputRequests).map((key) => [key, response]));

describe('a question', () => {
  const ask = async (params: Record<string, unknown> = {}) => (await call('deploy', params)).json.result;
  const accept = { action: 'accept', content: { action: 'accept' } };

  it('is keyed by its interrupt and answered as the principal that called', async () => {
    gated();
    const { resultType, inputRequests, requestState } = await ask({ arguments: { env: 'prod' } });
    expect(resultType).toBe('input_required');
    expect(Object.keys(inputRequests)).toEqual([`${onlyRun().runId}.i0`]);
    const { json } = await call('deploy', {
      arguments: { env: 'prod' },
      requestState,
      inputResponses: { ...answerAll(inputRequests, accept), unknown: 5 },
    });
    expect(json.result).toMatchObject({ resultType: 'complete', structuredContent: { decision: { action: 'accept' } } });
    expect(onlyRun().resolved).toEqual([
      { interruptId: `${onlyRun().runId}.i0`, resumeValue: { action: 'accept' }, by: callerOf().principal },
    ]);
  });

  it('takes a no for an answer', async () => {
    gated();
    const { inputRequests, requestState } = await ask();
    expect(
      (await call('deploy', { requestState, inputResponses: answerAll(inputRequests, { action: 'decline' }) })).json.result
        .structuredContent.decision,
    ).toEqual({ action: 'reject' });
  });

  it('that is cancelled ends the call', async () => {
    mount.as(visitor());
    gated();
    const { inputRequests, requestState } = await ask();
    const { json } = await call('deploy', { requestState, inputResponses: answerAll(inputRequests, { action: 'cancel' }) });
    expect(json.result).toMatchObject({ isError: true, _meta: { 'dev.isthmus/code': 'tool_canceled' } });
    expect(onlyRun().resolved).toEqual([]);
  });

  it('is answered once', async () => {
    gated();
    const { inputRequests, requestState } = await ask();
    const inputResponses = answerAll(inputRequests, accept);
    const both = await Promise.all([1, 2].map(() => call('deploy', { requestState, inputResponses })));
    const refused = both.filter(({ json }) => json.error);
    expect(refused).toHaveLength(1);
    expect(refused[0]?.json.error).toMatchObject({ code: -32602, data: { reason: 'request_state_used' } });
    expect(onlyRun().resolved).toHaveLength(1);
  });

  it.each([[{}], [{ other: { action: 'accept' } }]])(
    'is asked again, with a state of its own, when the answer is missing: %j',
    async (inputResponses) => {
      gated();
      const first = await ask();
      const second = await ask({ requestState: first.requestState, inputResponses });
      expect(second.inputRequests).toEqual(first.inputRequests);
      expect(second.requestState).not.toBe(first.requestState);
      expect(
        await call('deploy', { requestState: second.requestState, inputResponses: answerAll(second.inputRequests, accept) }),
      ).toMatchObject({ json: { result: { resultType: 'complete' } } });
    },
  );

  it.each([[12345], [null], ['yes'], [{ action: 'maybe' }], [{ action: 'accept', content: { action: 'explode' } }]])(
    'is not answered by %j, which consumes nothing',
    async (response) => {
      gated();
      const { inputRequests, requestState } = await ask();
      expect(await call('deploy', { requestState, inputResponses: answerAll(inputRequests, response as never) })).toMatchObject({
        status: 200,
        json: { error: { code: -32602 } },
      });
      expect(await call('deploy', { requestState, inputResponses: null })).toMatchObject({ json: { error: { code: -32602 } } });
      expect(onlyRun().resolved).toEqual([]);
      expect(await call('deploy', { requestState, inputResponses: answerAll(inputRequests, accept) })).toMatchObject({
        json: { result: { resultType: 'complete' } },
      });
    },
  );

  it('of two at once may be answered one after the other', async () => {
    mount.engine.expose('deploy', (_inputs, answers) =>
      answers['a'] && answers['b'] ? done({ both: true }) : { is: 'ask', interrupts: [approval('a'), approval('b')] },
    );
    const first = await ask();
    const [a = '', b = ''] = Object.keys(first.inputRequests);
    const second = await ask({ requestState: first.requestState, inputResponses: { [a]: accept } });
    expect(Object.keys(second.inputRequests)).toEqual([b]);
    expect((await ask({ requestState: second.requestState, inputResponses: { [b]: accept } })).structuredContent).toEqual({ both: true });
  });

  it('that no form can hold is an error result, and the run goes on waiting', async () => {
    mount.engine.expose('deploy', () => ({
      is: 'ask',
      interrupts: [clarification('pw', [{ id: 'p', question: 'Password?', schema: { type: 'string', format: 'password' } }])],
    }));
    expect(await ask()).toMatchObject({ resultType: 'complete', isError: true, _meta: { 'dev.isthmus/runId': onlyRun().runId } });
    expect(onlyRun().cancelled).toEqual([]);
  });

  it('cannot be answered by a caller that may not answer', async () => {
    gated();
    mount.as(visitor({ scopes: ['runs:create', 'runs:read'] }));
    const { inputRequests, requestState } = await ask();
    expect(await call('deploy', { requestState, inputResponses: answerAll(inputRequests, accept) })).toMatchObject({
      json: { error: { data: { reason: 'forbidden' } } },
    });
    expect(onlyRun().resolved).toEqual([]);
  });
});

describe('a requestState that is not ours to take', () => {
  it('is one and the same error, resumes nothing, and stands in the audit log', async () => {
    gated();
    mount.engine.expose('other', (inputs) => done(inputs));
    const { inputRequests, requestState } = (await call('deploy', { arguments: { env: 'prod' } })).json.result;
    const inputResponses = answerAll(inputRequests, { action: 'accept', content: { action: 'accept' } });
    const attempts: [string, Record<string, unknown>][] = [
      ['deploy', { arguments: { env: 'prod' }, requestState: `${requestState}x` }],
      ['deploy', { arguments: { env: 'prod' }, requestState: '' }],
      ['deploy', { arguments: { env: 'prod' }, requestState: null }],
      ['deploy', { arguments: { env: 'prod' }, requestState: 'v1.e30.AAAA' }],
      ['deploy', { arguments: { env: 'test' }, requestState }],
      ['other', { arguments: { env: 'prod' }, requestState }],
    ];
    const refusals = [];
    for (const [name, params] of attempts) refusals.push((await call(name, { ...params, inputResponses })).json.error);
    mount.as(callerOf({ principal: 'somebody-else' }));
    refusals.push((await call('deploy', { arguments: { env: 'prod' }, requestState, inputResponses })).json.error);
    mount.as(callerOf());
    for (const refusal of refusals) expect(refusal).toEqual(refusals[0]);
    expect(refusals[0]).toMatchObject({ code: -32602, data: { reason: 'invalid_request_state' } });
    expect(onlyRun().resolved).toEqual([]);
    await until(() => mount.engine.audit.length >= attempts.length + 1);
    expect(mount.engine.audit[0]).toMatchObject({
      type: 'authorization.decided',
      tenant: 'tenant-a',
      facts: { allowed: false, action: 'tool:deploy', reason: 'request-state-not-ours' },
    });
    expect(await call('deploy', { arguments: { env: 'prod' }, requestState, inputResponses })).toMatchObject({
      json: { result: { resultType: 'complete' } },
    });
  });
});

describe('mcp-server', () => {
  it('describes no more than it serves', async () => {
    const { data } = await mount.connection.request(mcpServer.describe.subject, JSON.stringify({ id: '1', data: {} }));
    expect(JSON.parse(Buffer.from(data).toString()).response.discovery.mcp).toEqual({
      supported: true,
      protocolVersions: ['2026-07-28'],
      preferredVersion: '2026-07-28',
      profiles: ['mcp-2026-07-28'],
      features: ['server-discover', 'mrtr', 'cacheable-lists'],
      serverMount: { supported: true, transports: ['streamable-http'], samplingBridge: false, elicitationBridge: true },
    });
  });

  it('makes the keys of requestState once, however many replicas start together', async () => {
    const admin = new pg.Client({ connectionString: mount.database.adminUrl });
    await admin.connect();
    const { rows } = await admin.query('select kid from mcp_server.state_keys');
    await admin.end();
    expect(rows).toEqual([{ kid: '1' }]);
  });
});
