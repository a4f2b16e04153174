import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { RunEvent, RunSnapshot } from '@isthmus/protocol';
import { type Fixture, fixturesFor } from '../../tools/fixtures.mjs';
import { Client } from './client.js';
import { fakeMcpServer } from './fake-mcp-server.js';
import { faultsIn, type Stack, START_MS, startStack } from './stack.js';

/** A host as `npm start -- --conformance` runs it, driven as the public suite drives it. */
let remote: Awaited<ReturnType<typeof fakeMcpServer>>;
let stack: Stack;
let alice: Client;
let bob: Client;
beforeAll(async () => {
  remote = await fakeMcpServer();
  stack = await startStack({
    mode: 'conformance',
    replicas: { engine: 2, 'mcp-server': 2 },
    env: { OPENWOP_MCP_FAKE_SERVER_URL: remote.url },
  });
  alice = new Client(stack.baseUrl, stack.keys.primary);
  bob = new Client(stack.baseUrl, stack.keys.tenantB);
}, START_MS);
afterAll(async () => {
  await stack?.stop();
  await remote?.close();
}, 60_000);

const seam = (path: string, body?: object) =>
  alice
    .ask(body ? 'POST' : 'GET', `/v1/host/sample${path}`, body && { body })
    .then(({ status, text }) => ({ status, body: JSON.parse(text) }));
const invoke = (body: object) => seam('/mcp/invoke', { serverUrl: remote.url, ...body });
type Discovery = {
  fixtures?: string[];
  auth: { profiles: string[]; auditLogIntegrity: { checkpointPublicKey: string } };
  mcp: { serverUrls: string[] };
};

describe('fixtures', () => {
  const wanted = fixturesFor({ mcpServerUrl: 'http://there' });

  it('are listed to anyone, exactly those that there are', async () => {
    const { fixtures } = await new Client(stack.baseUrl).get<Discovery>('/.well-known/openwop');
    expect(fixtures).toEqual(wanted.map(({ id }) => id));
  });

  it.each(wanted)('$id is there for both tenants, as it was written', async (fixture: Fixture) => {
    expect(await alice.get(`/v1/workflows/${fixture.id}`)).toEqual(fixture);
    expect(await bob.get(`/v1/workflows/${fixture.id}`)).toEqual(fixture);
  });

  it('are not written again by the next start', async () => {
    const { seedFixtures } = await import('../../tools/fixtures.mjs');
    const revision = async () => (await alice.get<{ revision: number }>('/v1/host/isthmus/workflows/conformance-noop')).revision;
    const before = await revision();
    await seedFixtures({ baseUrl: stack.baseUrl, keys: [stack.keys.primary], mcpServerUrl: remote.url });
    expect(await revision()).toBe(before);
  });

  it('mcp-tool-roundtrip reaches the server of the suite, by its own revision, and the log names the tool', async () => {
    remote.forget();
    const runId = await alice.start('conformance-mcp-tool-roundtrip', { text: 'roundtrip-probe' });
    expect(await alice.ended(runId)).toBe('completed');
    expect(remote.calls()).toMatchObject([{ params: { name: 'echo', arguments: { text: 'roundtrip-probe' } } }]);
    expect(JSON.stringify(await alice.events(runId))).toContain('echo');
  });
});

describe('the host as an MCP client', () => {
  it('says its revision on every request, in the header and in the body alike', async () => {
    remote.forget();
    const { status, body } = await invoke({});
    expect([status, body.negotiatedVersion, body.isError]).toEqual([200, '2026-07-28', false]);
    expect(remote.recorded.length).toBeGreaterThan(0);
    for (const { headers, params, method } of remote.recorded) {
      expect(headers['mcp-protocol-version']).toBe(body.negotiatedVersion);
      expect(headers['mcp-method']).toBe(method);
      expect((params['_meta'] as Record<string, unknown>)['io.modelcontextprotocol/protocolVersion']).toBe(body.negotiatedVersion);
    }
    expect(remote.calls()[0]?.headers['mcp-name']).toBe('echo');
  });

  it('refuses a revision nobody speaks, and sends nothing', async () => {
    remote.forget();
    const { status, body } = await invoke({ requestVersion: '1999-01-01' });
    expect([status, body.error]).toEqual([400, 'interop_version_unsupported']);
    expect(body.details).toMatchObject({ retriable: false, protocol: 'mcp', requested: '1999-01-01', supported: expect.any(Array) });
    expect(remote.recorded).toEqual([]);
  });

  it('answers what a tool asks, with the state it gave', async () => {
    remote.forget();
    const { status, body } = await invoke({
      tool: 'needs_input',
      clientCapabilities: { elicitation: {} },
      elicitationAnswer: { name: 'Ada' },
    });
    expect(status).toBe(200);
    expect(body.mrtr).toMatchObject({ inputRequiredSeen: true, retried: true, requestStateEchoed: true });
    expect(JSON.stringify(body.mrtr.result)).toContain('hello Ada');
    const calls = remote.calls();
    expect(calls).toHaveLength(2);
    expect(calls[1]?.params).toMatchObject({
      requestState: expect.stringMatching(/^mrtr:needs_input:/),
      inputResponses: { who: { action: 'accept', content: { name: 'Ada' } } },
    });
    for (const call of calls) expect(call.headers['mcp-protocol-version']).toBe('2026-07-28');
  });

  it('gives up on a tool that never stops asking', async () => {
    remote.forget();
    const { status, body } = await invoke({ tool: 'needs_input_loop', arguments: { rounds: 9 }, elicitationAnswer: { name: 'Ada' } });
    expect([status, body.error]).toEqual([422, 'mcp_mrtr_rounds_exceeded']);
    expect(remote.calls()).toHaveLength(9);
  });

  it('gives a foreign result no rights', async () => {
    remote.forget();
    const waiting = await alice.start('conformance-approval');
    await alice.waiting(waiting);
    remote.assertAuthority();
    const { status, body } = await invoke({ tool: 'echo', arguments: { text: 'opaque' }, scenario: 'extension-asserts-authority' });
    expect([status, body.extensionAuthority]).toEqual([200, { scopesWidened: false, approvalAdvanced: false }]);
    expect(remote.calls()).toHaveLength(1);
    expect((await alice.run(waiting)).status).toBe('waiting-approval');
  });

  it('finds what is on a later page of the list, and passes on a tool that fails', async () => {
    expect(await invoke({ tool: 'always-error' })).toMatchObject({ status: 200, body: { isError: true } });
    expect(await invoke({ tool: 'structured-echo', arguments: { nonce: 'n' } })).toMatchObject({
      status: 200,
      body: { toolResult: { structuredContent: { n: 7, nonce: 'n' } } },
    });
    expect(await invoke({ tool: 'nowhere' })).toMatchObject({ status: 422, body: { error: 'mcp_tool_not_found' } });
    expect(await seam('/mcp/invoke', { serverUrl: 'http://127.0.0.1:9/' })).toMatchObject({ status: 502 });
  });
});

describe('seams', () => {
  it('register a workflow that the next request of any replica sees', async () => {
    const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
    const list = async (client: Client, path: string) => {
      const { result } = await client.must<{ result: { tools: { name: string }[] } }>('POST', path, {
        headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list', accept: 'application/json, text/event-stream' },
        body: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } },
      });
      return result.tools.map(({ name }) => name);
    };
    for (let number = 0; number < 6; number += 1) {
      const name = `probe_${number}`;
      const { status } = await seam('/workflows', {
        workflowId: `mcp.probe.${name}`,
        nodes: [
          { nodeId: 'expose', typeId: 'core.openwop.mcp.expose-tool', config: { name, description: 'x', inputSchema: { type: 'object' } } },
        ],
        edges: [],
      });
      expect(status).toBe(201);
      for (const path of ['/mcp', '/v1/host/sample/mcp']) expect(await list(alice, path)).toContain(name);
      expect(await list(bob, '/mcp')).not.toContain(name);
    }
    expect((await seam('/workflows', { workflowId: 'mcp.probe.probe_0', nodes: [{ nodeId: 'n', typeId: 'core.noop' }] })).status).toBe(200);
    expect(
      await seam('/workflows', { workflowId: 'w', nodes: [{ nodeId: 'n', typeId: 'core.noop' }], edges: [{ from: 'n', to: 'n' }] }),
    ).toMatchObject({
      status: 400,
      body: { error: 'validation_error' },
    });
  });

  it.each([2, 5, 32])('let one of %d executors deliver', async (executors) => {
    const { status, body } = await seam('/test/idempotency/concurrent-claim', { executors });
    expect(status).toBe(200);
    expect(body).toMatchObject({ attempted: executors, delivered: 1 });
    expect(new Set(body.mintedIds)).toEqual(new Set([body.logicalInvocationId]));
    expect(body.mintedIds).toHaveLength(executors);
  });

  it('show the pair of a tool call without its arguments', async () => {
    const secret = 'sk-canary-0123456789abcdef';
    const { status, body } = await seam('/toolhooks/invoke', {
      principal: 'core.system',
      toolName: 'web.search',
      args: { query: 'x', token: secret },
    });
    expect(status).toBe(200);
    expect(body.toolCalled).toMatchObject({ toolName: 'web.search', argsHash: expect.stringMatching(/^[0-9a-f]{64}$/), transport: 'mcp' });
    expect(body.toolReturned).toMatchObject({ status: 'error', error: { code: expect.any(String), message: expect.any(String) } });
    expect(JSON.stringify(body)).not.toContain(secret);
    expect(await seam('/toolhooks/invoke', { toolName: 'db.delete', requiredScopes: ['db:write'] })).toMatchObject({ status: 404 });
  });

  it('show whose a run is, and that the neighbour has no business with it', async () => {
    const { status, body } = await seam('/identity/owned-run');
    expect([status, body.owner.tenant]).toEqual([200, 'acme']);
    const foreign = await seam('/identity/cross-workspace-read', {});
    expect(foreign.status).toBeGreaterThanOrEqual(400);
    expect(['run_forbidden', 'not_found']).toContain(foreign.body.error);
    expect(Object.keys(foreign.body).filter((name) => !['error', 'message', 'details'].includes(name))).toEqual([]);
  });

  it('show the log of a run to its workspace, filtered', async () => {
    const runId = await alice.start('conformance-multi-node');
    await alice.ended(runId);
    const read = async (query = '', client = alice) => client.ask('GET', `/v1/host/sample/test/runs/${runId}/events${query}`);
    const events = async (query?: string) => (JSON.parse((await read(query)).text) as { events: RunEvent[] }).events;
    expect(await events()).toEqual(await alice.events(runId));
    expect((await events('?type=node.completed&nodeId=b')).map(({ type, nodeId }) => [type, nodeId])).toEqual([['node.completed', 'b']]);
    expect(await events('?correlationId=x')).toEqual([]);
    expect((await read('', bob)).status).toBe(404);
  });
});

describe('the audit log', () => {
  it('is verified over HTTP by who may read it', async () => {
    const verdict = await alice.get<Record<string, unknown>>('/v1/audit/verify?fromSeq=0&toSeq=1000000');
    expect(verdict).toMatchObject({ fromSeq: 0, toSeq: 1_000_000, chainValid: true, anomalies: [] });
    expect((verdict['checkpoints'] as unknown[]).length).toBeGreaterThan(0);
    const { auth } = await alice.get<Discovery>('/.well-known/openwop');
    expect(auth.profiles).toContain('openwop-audit-log-integrity');
    expect((await new Client(stack.baseUrl, stack.keys.lowScope).ask('GET', '/v1/audit/verify')).status).toBe(403);
    expect((await alice.ask('GET', '/v1/audit/verify?fromSeq=-1')).status).toBe(400);
    expect((await alice.ask('GET', '/v1/audit/verify?fromSeq=2&toSeq=1')).status).toBe(400);
  });
});

it('runs the fixtures of both tenants side by side', async () => {
  const runs = await Promise.all(
    [alice, bob].map(async (client) => ({ client, runId: await client.start('conformance-subworkflow-parent') })),
  );
  for (const { client, runId } of runs) {
    expect(await client.ended(runId)).toBe('completed');
    expect((await client.get<RunSnapshot>(`/v1/runs/${runId}`)).variables['childOutcome']).toBe('child-completed');
  }
});

it('nothing of this is a fault of the host', () => {
  // A peer that is not there is one, on purpose: it is told with a 502.
  expect(faultsIn(stack).filter((line) => !line.includes('mcp_server_disconnected'))).toEqual([]);
});
