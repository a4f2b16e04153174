import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ALL_SCOPES } from '@isthmus/protocol';
import { until } from '@isthmus/testing';
import { EncryptJWT, jwtDecrypt } from 'jose';
import { Client } from './client.js';
import { chain, echo, gate, node, text, tool } from './make.js';
import { CAPABILITIES_KEY, Mount, type Request, request, type Result, REVISION, runOf, VERSION_KEY } from './mcp.js';
import { administer, audited, query } from './operator.js';
import { type Stack, START_MS, startStack } from './stack.js';

let stack: Stack;
let alice: Client;
let mount: Mount;

const PATIENCE_MS = 2_000;
const sleeper = node('sleep', 'core.delay', {}, { inputs: { delayMs: { type: 'variable', variableName: 'ms' } } });
const WORKFLOWS = [
  chain('wf-echo', [tool('echo', { text: { type: 'string' } }, { required: ['text'] }), echo('text')], { variables: [text('text')] }),
  chain('wf-deploy', [tool('deploy', { env: { type: 'string' } }), gate()]),
  chain('wf-destroy', [tool('destroy', { env: { type: 'string' } }), gate()]),
  chain('wf-form', [
    tool('form'),
    node('ask', 'core.openwop.mcp.handle-elicitation', {
      message: 'Which colour?',
      requestedSchema: { type: 'object', properties: { colour: { type: 'string', enum: ['red', 'blue'] } }, required: ['colour'] },
    }),
  ]),
  chain('wf-fail', [tool('Fail'), node('boom', 'core.fail', { code: 'out_of_paint', message: 'There is no paint.' })]),
  chain('wf-slow', [tool('slow', { ms: { type: 'integer' } }, { required: ['ms'] }), sleeper], {
    variables: [{ name: 'ms', type: 'number', required: true }],
  }),
];

beforeAll(async () => {
  stack = await startStack({ replicas: { 'mcp-server': 2 }, serviceEnv: { 'mcp-server': { SLOW_RUN_MS: String(PATIENCE_MS) } } });
  alice = new Client(stack.baseUrl, stack.keys.primary);
  mount = new Mount(stack.mcpUrl, stack.keys.primary);
  for (const workflow of WORKFLOWS) await alice.register(workflow);
}, START_MS);
afterAll(() => stack?.stop(), 60_000);

const runs = async (workflowId: string): Promise<string[]> =>
  (await alice.get<{ runs: { runId: string }[] }>(`/v1/host/isthmus/runs?workflowId=${workflowId}&limit=500`)).runs.map(
    ({ runId }) => runId,
  );
/** The result of an answer that has to be one. */
const resultOf = ({ status, result, text: said }: { status: number; result?: Result; text: string }): Result => {
  if (status !== 200 || !result) throw new Error(`answered ${status}: ${said}`);
  return result;
};
const asking = async (name: string, args: object = {}, from = mount): Promise<Result & { requestState: string }> => {
  const result = resultOf(await from.call(name, args));
  expect(result).toMatchObject({ resultType: 'input_required', requestState: expect.any(String) });
  return result as Result & { requestState: string };
};
const ACCEPT = { action: 'accept', content: { action: 'accept' } };

const list = request('tools/list');
const call = request('tools/call', { name: 'echo', arguments: { text: 'hi' } });
const without = ({ body, headers }: Request, name: string): Request => ({
  body,
  headers: Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name)),
});
const withHeader = ({ body, headers }: Request, name: string, value: string): Request => ({ body, headers: { ...headers, [name]: value } });
const withMeta = (meta: object, headers = list.headers): Request => ({ body: { ...list.body, params: { _meta: meta } }, headers });
const plain = { [VERSION_KEY]: REVISION, [CAPABILITIES_KEY]: {} };
const future = { ...plain, [VERSION_KEY]: '2027-01-01' };

describe('the mount, through gateway and tunnel', () => {
  it.each<[string, Request, number, number]>([
    ['a version header that differs, before the version is looked at', withMeta(future), 400, -32020],
    [
      'another method in the header, of a version nobody serves',
      withHeader(withMeta(future, withHeader(list, 'mcp-protocol-version', '2027-01-01').headers), 'mcp-method', 'tools/call'),
      400,
      -32020,
    ],
    ['another name in the header', withHeader(call, 'mcp-name', 'deploy'), 400, -32020],
    ['no version header', without(list, 'mcp-protocol-version'), 400, -32020],
    ['no method header', without(list, 'mcp-method'), 400, -32020],
    ['no name header', without(call, 'mcp-name'), 400, -32020],
    ['a version nobody serves', withMeta(future, withHeader(list, 'mcp-protocol-version', '2027-01-01').headers), 400, -32022],
    [
      'the handshake of an earlier era',
      {
        body: {
          jsonrpc: '2.0',
          id: 1,
          method: 'initialize',
          params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
        },
        headers: {},
      },
      400,
      -32022,
    ],
    ['no client capabilities', withMeta({ [VERSION_KEY]: REVISION }), 400, -32602],
    ['no _meta', { body: { ...list.body, params: {} }, headers: list.headers }, 400, -32602],
    [
      'a question that the client cannot show',
      request('tools/call', { name: 'deploy', arguments: {} }, { [CAPABILITIES_KEY]: {} }),
      400,
      -32021,
    ],
    ['initialize', request('initialize'), 404, -32601],
    ['ping', request('ping'), 404, -32601],
    ['logging/setLevel', request('logging/setLevel'), 404, -32601],
    ['resources/subscribe', request('resources/subscribe'), 404, -32601],
    ['a method nobody knows', request('tools/unknown'), 404, -32601],
    ['a batch', { body: [list.body] as never, headers: list.headers }, 400, -32600],
    ['half a document', { body: '{"jsonrpc":' as never, headers: list.headers }, 400, -32700],
  ])('refuses %s', async (_, { body, headers }, status, code) => {
    const answer = await mount.post(body, headers);
    expect([answer.status, answer.error?.code]).toEqual([status, code]);
    if (code === -32022) expect(answer.error?.data).toMatchObject({ supported: [REVISION] });
    if (code === -32021) expect(answer.error?.data).toEqual({ requiredCapabilities: { elicitation: { form: {} } } });
  });

  it('leaves no run behind that waits for a client which cannot answer', async () => {
    const [runId = ''] = await runs('wf-deploy');
    expect(await alice.ended(runId)).toBe('cancelled');
  });

  it.each(['GET', 'PUT', 'DELETE'])('has no %s', async (method) => {
    const response = await fetch(stack.mcpUrl, { method, headers: { authorization: `Bearer ${stack.keys.primary}` } });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
    await response.text();
  });

  it('takes JSON and nothing else', async () => {
    expect((await mount.post(JSON.stringify(list.body), { ...list.headers, 'content-type': 'text/plain' })).status).toBe(415);
  });

  it('accepts a notification without a word', async () => {
    const { status, text: said } = await mount.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    expect([status, said]).toEqual([202, '']);
  });

  it.each<[string, Record<string, string>]>([
    ['another host', { host: 'evil.example' }],
    ['the page of another origin', { origin: 'https://evil.example' }],
    ['a page without an origin', { origin: 'null' }],
  ])('is not there for %s, with whatever key', async (_, named) => {
    const status = await new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${stack.keys.primary}`, 'content-type': 'application/json', ...list.headers, ...named };
      httpRequest(stack.mcpUrl, { method: 'POST', headers }, (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end(JSON.stringify(list.body));
    });
    expect(status).toBe(403);
  });

  it('says what discovery says', async () => {
    const { result } = await mount.ask('server/discover');
    const { mcp } = await alice.get<{ mcp: { protocolVersions: string[] } }>('/.well-known/openwop');
    expect(result).toMatchObject({
      resultType: 'complete',
      supportedVersions: mcp.protocolVersions,
      capabilities: { tools: {} },
      cacheScope: 'private',
    });
    expect(Object.keys(result?.['capabilities'] as object)).toEqual(['tools']);
  });
});

describe('the list of tools', () => {
  it('is sorted by code unit, private, and keeps no session', async () => {
    const answer = await mount.list();
    expect(answer.result?.tools?.map(({ name }) => name)).toEqual(['Fail', 'deploy', 'destroy', 'echo', 'form', 'slow']);
    expect(answer.result).toMatchObject({ resultType: 'complete', cacheScope: 'private', ttlMs: expect.any(Number) });
    expect(answer.headers.get('mcp-session-id')).toBeNull();
  });

  it('changes with the very next request after a registration, whichever replica answers it', async () => {
    for (let round = 0; round < 10; round += 1) {
      await alice.register(chain('wf-extra', round % 2 === 0 ? [tool('extra')] : [tool('Other'), gate()]));
      const seen = await Promise.all([mount.names(), mount.names(), mount.names()]);
      for (const names of seen) expect([names.includes('extra'), names.includes('Other')]).toEqual([round % 2 === 0, round % 2 === 1]);
    }
  }, 30_000);

  it('is the same bytes from either replica', async () => {
    const texts: string[] = [];
    for (const absent of ['mcp-server-1', 'mcp-server-2']) {
      await stack.process(absent).stop();
      texts.push((await mount.list()).text);
      await stack.process(absent).start();
    }
    expect(texts[0]).toContain('"deploy"');
    expect(texts[1]).toBe(texts[0]);
  }, 60_000);

  it('is empty for who may start no run, and the tools are unknown to them', async () => {
    const low = new Mount(stack.mcpUrl, stack.keys.lowScope);
    expect(await low.names()).toEqual([]);
    const [forbidden, unknown] = [await low.call('echo', { text: 'hi' }), await mount.call('nobody-made-this')];
    expect(forbidden.error).toEqual(unknown.error);
  });

  it('is 503, and never empty, while the engine is away', async () => {
    await stack.process('engine-1').stop();
    const [listed, called] = await Promise.all([mount.list(), mount.call('echo', { text: 'hi' })]);
    await stack.process('engine-1').start();
    for (const answer of [listed, called]) expect([answer.status, answer.error?.code]).toEqual([503, -32603]);
    expect(await mount.names()).toContain('echo');
  }, 60_000);
});

describe('a call', () => {
  it('is checked before any run exists', async () => {
    const before = await runs('wf-echo');
    for (const args of [{}, { text: 5 }, { text: 'hi', other: 1 }, [], 'hi', null]) {
      const answer = await mount.call('echo', args as object);
      expect([answer.status, answer.error?.code]).toEqual([200, -32602]);
    }
    expect(await runs('wf-echo')).toEqual(before);
  });

  it('is a run, and the run is the result', async () => {
    const result = resultOf(await mount.call('echo', { text: 'hi' }));
    expect(result).toMatchObject({
      resultType: 'complete',
      structuredContent: { text: 'hi' },
      content: [{ type: 'text', text: '{"text":"hi"}' }],
    });
    expect(await alice.run(runOf(result))).toMatchObject({ workflowId: 'wf-echo', status: 'completed', inputs: { text: 'hi' } });
  });

  it('of a run that fails is a result a model can read, not a protocol error', async () => {
    const answer = await mount.call('Fail');
    expect(answer.error).toBeUndefined();
    expect(answer.result).toMatchObject({ isError: true, content: [{ text: 'out_of_paint: There is no paint.' }] });
  });

  it('of a run that takes too long gets a state to ask again with, as often as it likes, until it is done', async () => {
    const args = { ms: PATIENCE_MS * 3 };
    const first = resultOf(await mount.call('slow', args));
    expect(Object.keys(first).sort()).toEqual(['_meta', 'requestState', 'resultType']);
    const again = () => mount.call('slow', args, { requestState: first.requestState });
    let done: Result[];
    do done = (await Promise.all([again(), again()])).map(resultOf);
    while (done.some(({ resultType }) => resultType !== 'complete'));
    expect(new Set(done.map(runOf)).size).toBe(1);
    expect(await alice.run(runOf(done[0] as Result))).toMatchObject({ status: 'completed' });
  }, 30_000);
});

describe('a call whose client goes away', () => {
  const leave = async (headers: Record<string, string> = {}, ms = 600_000): Promise<string> => {
    const before = new Set(await runs('wf-slow'));
    const gone = new AbortController();
    const lost = mount.call('slow', { ms }, {}, { headers, signal: gone.signal }).catch((error: Error) => error.name);
    const runId = await until(async () => (await runs('wf-slow')).find((id) => !before.has(id)), { timeoutMs: PATIENCE_MS });
    gone.abort();
    expect(await lost).toBe('AbortError');
    return runId as string;
  };

  it('is cancelled', async () => {
    const runId = await leave();
    expect(await alice.ended(runId)).toBe('cancelled');
    expect((await alice.events(runId)).at(-1)).toMatchObject({ type: 'run.cancelled', payload: { reason: 'mcp-request-cancelled' } });
  }, 30_000);

  describe('but had named a key', () => {
    const args = { ms: PATIENCE_MS };
    let runId: string;

    it('goes on', async () => {
      runId = await leave({ 'idempotency-key': 'left-1' }, args.ms);
      expect(await alice.ended(runId)).toBe('completed');
    }, 30_000);

    it.each<[string, object]>([
      ['its header', { headers: { 'idempotency-key': 'left-1' } }],
      ['_meta', { meta: { 'dev.isthmus/idempotencyKey': 'left-1' } }],
    ])('is found by a repeat with that key in %s, and nothing else is', async (_, withKey) => {
      expect(runOf(resultOf(await mount.call('slow', args, {}, withKey)))).toBe(runId);
      const other = await mount.call('slow', { ms: 1 }, {}, withKey);
      expect(other.error).toMatchObject({ code: -32602, data: { reason: 'idempotency_key_mismatch' } });
    });
  });
});

describe('a question', () => {
  it('is keyed by its interrupt, and an accepted one completes the run as its caller decided', async () => {
    const [one, other] = [await asking('deploy', { env: 'a' }), await asking('deploy', { env: 'a' })];
    const [runTwo = '', runOne = ''] = await runs('wf-deploy');
    for (const [asked, runId] of [
      [one, runOne],
      [other, runTwo],
    ] as const) {
      const suspended = (await alice.events(runId)).find(({ type }) => type === 'node.suspended');
      const [key] = Object.keys(asked.inputRequests ?? {});
      expect(key).toBeDefined();
      expect(suspended?.payload).toMatchObject({ interruptId: key });
    }
    const result = resultOf(await mount.answer('deploy', { env: 'a' }, one, ACCEPT));
    expect([result.resultType, runOf(result)]).toEqual(['complete', runOne]);
    expect((await alice.run(runTwo)).status).toBe('waiting-approval');
    expect((await alice.events(runOne)).find(({ type }) => type === 'approval.received')?.payload).toMatchObject({
      decidedBy: 'user-alice',
    });
  });

  it('takes a no for an answer, and a closed form for the end of the call', async () => {
    const declined = resultOf(await mount.answer('deploy', {}, await asking('deploy'), { action: 'decline' }));
    expect(declined).toMatchObject({ isError: true, _meta: { 'dev.isthmus/code': 'approval_rejected' } });
    const cancelled = resultOf(await mount.answer('deploy', {}, await asking('deploy'), { action: 'cancel' }));
    expect(cancelled).toMatchObject({ isError: true, _meta: { 'dev.isthmus/code': 'tool_canceled' } });
    expect(await Promise.all([declined, cancelled].map((result) => alice.ended(runOf(result))))).toEqual(['failed', 'cancelled']);
  });

  it('of a form shows the form, and takes what the form allows and nothing else', async () => {
    const question = await asking('form');
    expect(Object.values(question.inputRequests ?? {})).toMatchObject([
      {
        method: 'elicitation/create',
        params: { mode: 'form', message: 'Which colour?', requestedSchema: { properties: { colour: { enum: ['red', 'blue'] } } } },
      },
    ]);
    for (const content of [{}, { colour: 'green' }, { colour: 5 }, []])
      expect((await mount.answer('form', {}, question, { action: 'accept', content })).error?.code).toBe(-32602);
    const result = resultOf(await mount.answer('form', {}, question, { action: 'accept', content: { colour: 'blue' } }));
    expect(result.structuredContent).toMatchObject({ action: 'accept', content: { colour: 'blue' } });
  });

  it('can be answered on another replica after the one that asked was killed', async () => {
    await stack.process('mcp-server-2').stop();
    const asked = await asking('deploy', { env: 'killed' });
    await stack.process('mcp-server-2').start();
    stack.process('mcp-server-1').signal('SIGKILL');
    const answered = await until(async () => {
      const answer = await mount.answer('deploy', { env: 'killed' }, asked, ACCEPT);
      return answer.status !== 503 && answer;
    });
    expect(resultOf(answered as never).resultType).toBe('complete');
    await stack.ready();
  }, 60_000);
});

describe('a requestState', () => {
  const args = { env: 'prod' };
  const refusal = { code: -32602, data: { reason: 'invalid_request_state' } };
  let asked: Result & { requestState: string };
  let runId: string;
  let colleague: Mount;
  const bring = (
    requestState: unknown,
    { from = mount, name = 'deploy', given = args }: { from?: Mount; name?: string; given?: object } = {},
  ) => from.answer(name, given, { ...asked, requestState: requestState as string }, ACCEPT);

  beforeAll(async () => {
    colleague = new Mount(stack.mcpUrl, stack.keys.lowScope);
    // The one principal of this tenant besides Alice, who may now do all that she may.
    await administer(stack, 'set-scopes', 'acme', 'user-low', ALL_SCOPES.join(','));
    await until(async () => (await colleague.names()).includes('deploy'));
    asked = await asking('deploy', args);
    [runId = ''] = await runs('wf-deploy');
  }, 30_000);

  /** The state as it will be when its time is over, sealed with the host's own key. */
  async function expired(): Promise<string> {
    const keys = await query<{ kid: string; secret: Buffer }>(stack, 'select kid, secret from mcp_server.state_keys');
    const { payload, protectedHeader } = await jwtDecrypt(
      asked.requestState,
      ({ kid }) => keys.find((key) => key.kid === kid)?.secret as Uint8Array,
    );
    const secret = keys.find(({ kid }) => kid === protectedHeader.kid)?.secret as Uint8Array;
    const reseal = (exp: number) => new EncryptJWT({ ...payload, exp }).setProtectedHeader(protectedHeader as never).encrypt(secret);
    // Sealed by us in the same way and not expired it would be taken: nothing but the time is wrong with it.
    expect((await bring(await reseal(Number(payload.exp)), { given: { env: 'other' } })).error).toMatchObject(refusal);
    return reseal(Math.floor(Date.now() / 1_000) - 60);
  }

  it.each<[string, () => unknown]>([
    ['with something added', () => `${asked.requestState}x`],
    ['with something missing', () => asked.requestState.slice(0, -1)],
    ['with one character changed', () => asked.requestState.replace(/[^.](?=[^.]*$)/, (char) => (char === 'A' ? 'B' : 'A'))],
    ['that is empty', () => ''],
    ['that is null', () => null],
    ['that nobody sealed', () => Buffer.from(JSON.stringify({ runId })).toString('base64url')],
    ['whose time is over', expired],
  ])('%s is refused', async (_, state) => {
    expect((await bring(await state())).error).toMatchObject(refusal);
    expect((await alice.run(runId)).status).toBe('waiting-approval');
  });

  it('is good for the call it was given for, and for no other arguments and no other tool', async () => {
    expect((await bring(asked.requestState, { given: { env: 'test' } })).error).toMatchObject(refusal);
    expect((await bring(asked.requestState, { name: 'destroy' })).error).toMatchObject(refusal);
    expect((await alice.run(runId)).status).toBe('waiting-approval');
  });

  it('is worth nothing to anybody else, be it a colleague who may do the same', async () => {
    expect((await bring(asked.requestState, { from: colleague })).error).toMatchObject(refusal);
    const stranger = await bring(asked.requestState, { from: new Mount(stack.mcpUrl, stack.keys.tenantB) });
    expect(stranger.error).toEqual((await mount.call('nobody-made-this')).error);
    expect((await alice.run(runId)).status).toBe('waiting-approval');
  });

  it('tells its refusals to the audit log, and to nobody else why', async () => {
    const reasons = ['altered', 'expired', 'not-ours', 'of-another-request'].map((why) => `request-state-${why}`);
    const denied = async () =>
      (await audited(stack, 'acme')).filter(({ type, facts }) => type === 'authorization.decided' && facts['action'] === 'tool:deploy');
    await until(
      async () => expect((await denied()).map(({ facts }) => facts['reason'])).toEqual(expect.arrayContaining(reasons)) === undefined,
    );
  });

  it('still works after all of these, also with another key of the same principal, and then never again', async () => {
    const result = resultOf(await bring(asked.requestState, { from: new Mount(stack.mcpUrl, stack.keys.secondary) }));
    expect([result.resultType, runOf(result)]).toEqual(['complete', runId]);
    expect((await bring(asked.requestState)).error).toMatchObject({ code: -32602, data: { reason: 'request_state_used' } });
    expect((await alice.events(runId)).filter(({ type }) => type === 'interrupt.resolved')).toHaveLength(1);
  });

  it('brought by two at once is taken once, and a lost answer is found again by the key of the call', async () => {
    const key = { headers: { 'idempotency-key': 'lost-1' } };
    const question = resultOf(await mount.call('deploy', args, {}, key));
    const both = await Promise.all([mount.answer('deploy', args, question, ACCEPT), mount.answer('deploy', args, question, ACCEPT)]);
    expect(both.filter(({ result }) => result).length).toBeGreaterThanOrEqual(1);
    for (const { result, error } of both) if (!result) expect(error?.data?.reason).toBe('request_state_used');
    const found = resultOf(await mount.call('deploy', args, {}, key));
    expect([found.resultType, runOf(found)]).toEqual(['complete', runOf(both.find(({ result }) => result)?.result as Result)]);
    expect((await alice.events(runOf(found))).filter(({ type }) => type === 'approval.received')).toHaveLength(1);
  });
});
