import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mcpClient, type Output, type Route, WopError } from '@isthmus/protocol';
import { answer, callerOf } from '@isthmus/testing';
import { type Host, startHost } from '../fake-host.suite.js';
import { MCP_ALIAS, SEAMS } from './seams.js';

const RUN = '0190a000-0000-7000-8000-ffffffffffff';
const all: readonly (readonly [string, Route])[] = Object.entries(SEAMS);
const pathOf = (route: Route): string => route.path.replace('{runId}', RUN);
const BODIES: Readonly<Record<string, object>> = {
  mcpInvoke: { serverUrl: 'http://127.0.0.1:1/' },
  concurrentClaim: { executors: 2 },
  toolHooks: { toolName: 'web.search' },
};
const json = { 'content-type': 'application/json' };
/** Public suites ask these four without a credential. (test-seam-unauthenticated) */
const WITNESSED = ['test/mock-ai/program', 'governance/approval-gate', 'packs/install-gate', 'subrun/attest'].map(
  (path) => `/v1/host/sample/${path}`,
);

describe('with the gate closed', () => {
  let host: Host;
  beforeAll(async () => {
    host = await startHost();
  });
  afterAll(() => host.close());

  it.each(all)('%s is not there, with or without a credential', async (_, route) => {
    for (const headers of [{}, host.as('primary')]) {
      const body = route.method === 'POST' ? { body: '{}', headers: { ...headers, ...json } } : { headers };
      const response = await fetch(`${host.url}${pathOf(route)}`, { method: route.method, ...body });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ error: 'not_found', message: expect.any(String) });
    }
  });

  it('the mount has one name only, and nothing of it stands in the interface', async () => {
    const response = await fetch(`${host.url}${MCP_ALIAS}`, { method: 'POST', headers: host.as('primary', json), body: '{}' });
    expect(response.status).toBe(404);
    expect(await (await fetch(`${host.url}/v1/openapi.json`)).text()).not.toContain('/host/sample/');
  });

  it('stays closed for anything but true', async () => {
    const other = await host.gateway({ OPENWOP_TEST_SEAM_ENABLED: '1' });
    try {
      expect((await fetch(`${other.url}/v1/host/sample/identity/owned-run`, { headers: host.as('primary') })).status).toBe(404);
    } finally {
      await other.app.close();
    }
  });
});

describe('with the gate open', () => {
  let host: Host;
  const stops: (() => void)[] = [];
  const rounds: {
    round: number;
    requestState?: string | undefined;
    inputResponses?: object | undefined;
    toolName: string;
    arguments: object;
  }[] = [];
  /** What the remote tool answers, round by round. */
  let script: Output<typeof mcpClient.callEndpoint>[] = [];
  beforeAll(async () => {
    host = await startHost({ OPENWOP_TEST_SEAM_ENABLED: 'true' });
    host.keys.set('watcher', callerOf({ kind: 'service', principal: 'service:gateway' }));
    stops.push(
      answer(host.nats, mcpClient.callEndpoint, (input) => {
        rounds.push(input);
        const next = script.shift();
        if (!next) throw new WopError('mcp_server_disconnected', 'The remote MCP server could not be reached.');
        return next;
      }),
    );
    await host.nats.flush();
  });
  afterAll(async () => {
    for (const stop of stops) stop();
    await host.close();
  });
  const invoke = async (body: object) => {
    const response = await fetch(`${host.url}/v1/host/sample/mcp/invoke`, {
      method: 'POST',
      headers: host.as('primary', json),
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  it.each(all)('%s asks for a credential, and for one of a principal', async (name, route) => {
    const ask = (headers: Record<string, string>) =>
      fetch(`${host.url}${pathOf(route)}`, {
        method: route.method,
        ...(route.method === 'POST' ? { body: JSON.stringify(BODIES[name] ?? {}), headers: { ...headers, ...json } } : { headers }),
      });
    const anonymous = await ask({ cookie: 'session=anon:1' });
    expect(anonymous.status).toBe(401);
    expect(await anonymous.json()).toMatchObject({ error: 'unauthenticated' });
    expect((await ask(host.as('nobody'))).status).toBe(401);
    expect((await ask(host.as('watcher'))).status).toBe(403);
  });

  it.each(WITNESSED)('GET %s tells nothing without a credential', async (path) => {
    expect([401, 403, 404, 405]).toContain((await fetch(`${host.url}${path}`)).status);
  });

  it('the mount answers to both names alike, guarded alike', async () => {
    const ask = (path: string, headers: Record<string, string>) =>
      fetch(`${host.url}${path}`, { method: 'POST', headers: { ...json, ...headers }, body: '{}' });
    for (const path of ['/mcp', MCP_ALIAS, `${MCP_ALIAS}?a=1`]) {
      const anonymous = await ask(path, {});
      expect([anonymous.status, ((await anonymous.json()) as { jsonrpc: string }).jsonrpc]).toEqual([401, '2.0']);
      expect((await ask(path, { ...host.as('primary'), origin: 'https://elsewhere.test' })).status).toBe(403);
      // No replica is there: the exchange was tried.
      expect((await ask(path, host.as('primary'))).status).toBe(503);
      expect((await fetch(`${host.url}${path}`, { method: 'GET', headers: host.as('primary') })).status).toBe(405);
    }
    expect((await ask(`${MCP_ALIAS}/`, host.as('primary'))).status).toBe(404);
  });

  it('refuses what is not a wish of its own', async () => {
    for (const body of [{}, { serverUrl: 'nonsense' }, { serverUrl: 'file:///etc/passwd' }, { serverUrl: 'http://h/', surprise: 1 }])
      expect(await invoke(body)).toMatchObject({ status: 400, body: { error: 'validation_error' } });
  });

  it('calls echo where no tool is named', async () => {
    rounds.length = 0;
    script = [{ is: 'complete', result: { content: [] }, isError: false, negotiatedVersion: '2026-07-28' }];
    expect(await invoke({ serverUrl: 'http://127.0.0.1:1/' })).toEqual({
      status: 200,
      body: { negotiatedVersion: '2026-07-28', toolResult: { content: [] }, isError: false },
    });
    expect(rounds).toMatchObject([{ toolName: 'echo', arguments: { text: 'openwop-conformance' }, round: 0 }]);
  });

  it('answers every key of every round, echoes the state, and keeps one invocation id', async () => {
    rounds.length = 0;
    const asks = (requestState: string) =>
      ({ is: 'input_required', inputRequests: { who: {}, where: {} }, requestState, negotiatedVersion: '2026-07-28' }) as const;
    script = [asks('s1'), asks('s2'), { is: 'complete', result: { content: [] }, isError: false, negotiatedVersion: '2026-07-28' }];
    const wish = { serverUrl: 'http://127.0.0.1:1/', tool: 'needs_input', elicitationAnswer: { name: 'Ada' } };
    expect(await invoke(wish)).toMatchObject({
      status: 200,
      body: { mrtr: { inputRequiredSeen: true, retried: true, requestStateEchoed: true, result: { content: [] } } },
    });
    const accepted = { action: 'accept', content: { name: 'Ada' } };
    expect(rounds.map(({ round, requestState, inputResponses }) => ({ round, requestState, inputResponses }))).toEqual([
      { round: 0, requestState: undefined, inputResponses: undefined },
      { round: 1, requestState: 's1', inputResponses: { who: accepted, where: accepted } },
      { round: 2, requestState: 's2', inputResponses: { who: accepted, where: accepted } },
    ]);
    expect(new Set(rounds.map((round) => (round as { invocationId?: string }).invocationId)).size).toBe(1);
  });

  it('never answers for someone who was not asked to, and stops where a tool keeps asking', async () => {
    const asks = { is: 'input_required', inputRequests: { who: {} }, requestState: 's', negotiatedVersion: '2026-07-28' } as const;
    script = [asks];
    expect(await invoke({ serverUrl: 'http://127.0.0.1:1/', tool: 'needs_input' })).toMatchObject({
      status: 502,
      body: { error: 'mcp_tool_invocation_failed' },
    });
    rounds.length = 0;
    script = Array.from({ length: 20 }, () => asks);
    expect(await invoke({ serverUrl: 'http://127.0.0.1:1/', tool: 'needs_input', elicitationAnswer: {} })).toMatchObject({
      status: 422,
      body: { error: 'mcp_mrtr_rounds_exceeded' },
    });
    expect(rounds).toHaveLength(9);
    script = [];
    expect(await invoke({ serverUrl: 'http://127.0.0.1:1/' })).toMatchObject({ status: 502, body: { error: 'mcp_server_disconnected' } });
  });

  it('looks what a foreign answer moved', async () => {
    script = [{ is: 'complete', result: {}, isError: false, negotiatedVersion: '2026-07-28' }];
    const before = host.counts.delegate;
    const { body } = await invoke({ serverUrl: 'http://127.0.0.1:1/', scenario: 'extension-asserts-authority' });
    expect(body['extensionAuthority']).toEqual({ scopesWidened: false, approvalAdvanced: false });
    // Asked before and after, not assumed.
    expect(host.counts.delegate).toBe(before + 2);
  });
});
