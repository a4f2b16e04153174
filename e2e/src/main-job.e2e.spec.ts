import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ROUTES, type RunEvent, type RunSnapshot } from '@isthmus/protocol';
import { type ModernPeer, modernPeer } from '@isthmus/testing';
import { RESEARCH, startEverything } from '../../tools/demo.mjs';
import { Client, gather, isOver, upTo } from './client.js';
import { call, chain, delay, gate, node, noop, tool } from './make.js';
import { officialClient } from './mcp.js';
import { type Stack, START_MS, startStack } from './stack.js';

let stack: Stack;
let everything: Awaited<ReturnType<typeof startEverything>>;
let peer: ModernPeer;
let alice: Client;

beforeAll(async () => {
  [stack, everything, peer] = await Promise.all([startStack(), startEverything(), modernPeer()]);
  alice = new Client(stack.baseUrl, stack.keys.primary);
}, START_MS);
afterAll(async () => {
  await Promise.all([peer?.close(), everything?.stop(), stack?.stop()]);
}, 60_000);

/** What the remote tool is given and what it answers; only the topic itself is an input of the run. */
const ARGUMENT = 'All about';
/** (execution.md §3.4) */
const TYPES = [
  'run.started',
  'node.started expose',
  'node.completed expose',
  'node.started lookup',
  'agent.toolCalled lookup',
  'agent.toolReturned lookup',
  'node.completed lookup',
  'node.started gate',
  'interrupt.requested gate',
  'approval.requested gate',
  'node.suspended gate',
  'approval.received gate',
  'interrupt.resolved gate',
  'node.resumed gate',
  'node.completed gate',
  'run.completed',
];
const named = ({ type, nodeId }: RunEvent): string => (nodeId ? `${type} ${nodeId}` : type);
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

describe('the main job', () => {
  let runId: string;
  let log: RunEvent[];

  it('registers a remote server nobody here wrote, and the workflow that calls it', async () => {
    const mounted = await alice.ask('PUT', '/v1/host/isthmus/mounts/everything', {
      body: { url: everything.url, versionPolicy: { allow: ['2025-11-25', '2026-07-28'] } },
    });
    expect([mounted.status, JSON.parse(mounted.text)]).toEqual([
      201,
      expect.objectContaining({ serverId: 'everything', url: everything.url }),
    ]);
    const { tools } = await alice.get<{ tools: { name: string }[] }>('/v1/host/isthmus/mounts/everything/tools');
    expect(tools.map(({ name }) => name)).toContain('echo');
    const registered = await alice.ask('PUT', '/v1/host/isthmus/workflows/research', { body: RESEARCH });
    expect([registered.status, JSON.parse(registered.text)]).toEqual([
      201,
      expect.objectContaining({ workflowId: 'research', revision: 1 }),
    ]);
    expect(await alice.get('/v1/workflows/research')).toMatchObject(RESEARCH);
  });

  it('runs it over REST: the run waits for its approver, who sees what came from outside, and then completes', async () => {
    runId = await alice.start('research', { topic: 'isthmuses' });
    log = [];
    for await (const { id, event, data } of alice.follow(runId)) {
      expect([id, event]).toEqual([String(data.sequence), data.type]);
      log.push(data);
      if (data.type !== 'approval.requested') continue;
      const { status, currentNodeId, interrupt } = await alice.run(runId);
      expect([status, currentNodeId]).toEqual(['waiting-approval', 'gate']);
      expect(interrupt).toMatchObject({
        kind: 'approval',
        nodeId: 'gate',
        payload: { title: 'Publish what was found?', artifactData: { found: 'Echo: All about isthmuses' }, contentTrust: 'untrusted' },
      });
      await alice.resolve(runId, 'gate', { action: 'accept' });
    }
    expect(log.map(named)).toEqual(TYPES);
    expect(log.map(({ sequence }) => sequence)).toEqual(upTo(TYPES.length));
    expect(log.find(({ type }) => type === 'approval.received')?.payload).toMatchObject({ action: 'accept', decidedBy: 'user-alice' });
    expect(await alice.run(runId)).toMatchObject({
      status: 'completed',
      owner: { tenant: 'acme', workspace: 'main', principal: 'user-alice' },
      variables: { lookup: { result: 'Echo: All about isthmuses', isError: false, contentTrust: 'untrusted' } },
    });
  }, 30_000);

  it('keeps what the tool was given and what it answered out of every form of the log: hashes and sizes stand there', async () => {
    const forms = await Promise.all([
      alice.ask('GET', `/v1/runs/${runId}/events?streamMode=debug`, { headers: { accept: 'text/event-stream' } }),
      alice.ask('GET', `/v1/runs/${runId}/events?streamMode=debug`, { headers: { accept: 'application/json' } }),
      alice.ask('GET', `/v1/runs/${runId}/events/poll`),
    ]);
    for (const { status, text } of forms) {
      expect(status).toBe(200);
      expect(text).toContain('run.completed');
      expect(text).not.toContain(ARGUMENT);
      expect(text.split('isthmuses')).toHaveLength(2); // the run's own input, once
    }
    expect(log.find(({ type }) => type === 'agent.toolCalled')?.payload).toMatchObject({
      toolName: 'echo',
      serverId: 'everything',
      argsHash: sha256('{"message":"All about isthmuses"}'),
      transport: 'mcp',
    });
    expect(log.find(({ type }) => type === 'agent.toolReturned')).toMatchObject({
      contentTrust: 'untrusted',
      payload: {
        status: 'ok',
        resultSha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        resultLength: expect.any(Number),
        negotiatedVersion: '2025-11-25',
      },
    });
  });

  it('serves it to an outside MCP client, which is asked, answers, and gets the result', async () => {
    const asked: string[] = [];
    const client = await officialClient(stack.mcpUrl, stack.keys.primary, (message) => {
      asked.push(message);
      return { action: 'accept', content: { action: 'accept' } };
    });
    try {
      expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
      const { tools } = await client.listTools();
      expect(tools).toMatchObject([{ name: 'research', inputSchema: { required: ['topic'] } }]);
      const result = await client.callTool({ name: 'research', arguments: { topic: 'land bridges' } });
      expect(asked).toEqual([expect.stringMatching(/^Publish what was found\?[\s\S]*Echo: All about land bridges/)]);
      expect(result.isError).toBeFalsy();
      expect(JSON.stringify(result.content)).toContain('Echo: All about land bridges');
      expect(result._meta).toMatchObject({ 'dev.isthmus/contentTrust': 'untrusted' });
      const events = await alice.events(String(result._meta?.['dev.isthmus/runId']));
      expect(events.map(named)).toEqual(TYPES);
      expect(events[0]?.payload).toMatchObject({ transport: 'mcp', owner: { principal: 'user-alice' } });
    } finally {
      await client.close();
    }
  }, 30_000);
});

describe('the two documents anyone may read', () => {
  it('say where the mount is, and are not sent again to who has them', async () => {
    const anyone = new Client(stack.baseUrl);
    const first = await anyone.ask('GET', '/.well-known/openwop');
    expect(first.headers.get('cache-control')).toBe('public, max-age=300');
    expect(JSON.parse(first.text)).toMatchObject({
      protocolVersion: '1.0',
      mcp: { supported: true, serverUrls: [stack.mcpUrl], serverMount: { transports: ['streamable-http'] } },
    });
    const again = await anyone.ask('GET', '/.well-known/openwop', { headers: { 'if-none-match': first.headers.get('etag') ?? '' } });
    expect([again.status, again.text]).toEqual([304, '']);
  });

  it('describe exactly the routes that are served', async () => {
    const document = await new Client(stack.baseUrl).get<{ openapi: string; paths: Record<string, object> }>('/v1/openapi.json');
    expect(document.openapi).toMatch(/^3\.1/);
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(described.sort()).toEqual(
      Object.values(ROUTES)
        .map(({ method, path }) => `${method} ${path}`)
        .sort(),
    );
  });
});

describe('a stream', () => {
  it('goes on after any event it is told of, without a gap and without a repeat, while the run goes on', async () => {
    await alice.register(chain('long', [noop('a'), noop('b'), gate(), delay(200), noop('c')]));
    const runId = await alice.start('long');
    await alice.waiting(runId);
    const before = (await alice.events(runId)).length;
    const places = [undefined, ...upTo(before).map(String)];
    const streams = await Promise.all(places.map((after) => alice.stream(runId, { after })));
    await alice.resolve(runId, 'gate', { action: 'accept' });
    await alice.ended(runId);
    const all = (await alice.events(runId)).length;
    expect(all).toBeGreaterThan(before + 5);
    for (const [at, stream] of streams.entries()) expect((await gather(stream)).map(({ id }) => Number(id))).toEqual(upTo(all).slice(at));
  }, 30_000);

  it('that is cut after every single event loses nothing', async () => {
    const runId = await alice.start('long');
    const seen: string[] = [];
    for (let isDone = false; !isDone; ) {
      const last = seen.at(-1);
      for await (const { id, data } of alice.follow(runId, { after: last })) {
        seen.push(String(id));
        if (data.type === 'approval.requested') await alice.resolve(runId, 'gate', { action: 'accept' });
        isDone = isOver(data.type.slice('run.'.length));
        break;
      }
    }
    expect(seen).toEqual(upTo((await alice.events(runId)).length).map(String));
  }, 30_000);

  it('of an ended run begins anywhere and ends by itself; JSON by Accept is the same log', async () => {
    const runId = await alice.start('long');
    await alice.waiting(runId);
    await alice.must('POST', `/v1/runs/${runId}/cancel`, { body: { reason: 'enough' } });
    const log = await alice.events(runId);
    expect(log.at(-1)).toMatchObject({ type: 'run.cancelled', payload: { reason: 'enough', cancelledBy: 'user-alice' } });
    for (const after of upTo(log.length))
      expect((await alice.frames(runId, { after: String(after) })).map(({ data }) => data)).toEqual(log.slice(after + 1));
  });
});

describe('a poll', () => {
  it('has both published forms, and its answer about an ended run never changes', async () => {
    const runId = await alice.start('long');
    await alice.waiting(runId);
    const open = await alice.poll(runId);
    expect(open).toEqual({
      runId,
      events: await alice.events(runId),
      isComplete: false,
      isTerminal: false,
      lastEventSeq: open.events.length - 1,
      runStatus: 'waiting-approval',
    });
    await alice.must('POST', `/v1/runs/${runId}/cancel`);
    const [first, second] = [
      await alice.ask('GET', `/v1/runs/${runId}/events/poll`),
      await alice.ask('GET', `/v1/runs/${runId}/events/poll`),
    ];
    expect(second.text).toBe(first.text);
    expect(JSON.parse(first.text)).toMatchObject({ isComplete: true, isTerminal: true, runStatus: 'cancelled' });
    const beyond = await alice.poll(runId, `?lastSequence=${open.events.length + 99}`);
    expect(beyond).toMatchObject({ events: [], isTerminal: true });
  });
});

describe('a run', () => {
  it('is started once for one key, and the second answer is the first one to the byte', async () => {
    const body = { workflowId: 'long', inputs: {}, tags: ['once'] };
    const headers = { 'idempotency-key': 'main-job-1' };
    const [first, second] = await Promise.all([
      alice.ask('POST', '/v1/runs', { body, headers }),
      alice.ask('POST', '/v1/runs', { body, headers }),
    ]);
    const { runId } = JSON.parse(first.text) as { runId: string };
    await alice.waiting(runId);
    const third = await alice.ask('POST', '/v1/runs', { body: { tags: ['once'], inputs: {}, workflowId: 'long' }, headers });
    for (const answer of [first, second, third]) expect([answer.status, answer.text]).toEqual([201, first.text]);
    expect([first, second].map((answer) => answer.headers.get('openwop-idempotent-replay')).sort()).toEqual(['false', 'true']);
    expect(third.headers.get('openwop-idempotent-replay')).toBe('true');
    const other = await alice.ask('POST', '/v1/runs', { body: { ...body, tags: ['twice'] }, headers });
    expect([other.status, JSON.parse(other.text)]).toEqual([409, expect.objectContaining({ error: 'idempotency_key_mismatch' })]);
    const { runs } = await alice.get<{ runs: { runId: string }[] }>('/v1/host/isthmus/runs?tag=once');
    expect(runs.map((run) => run.runId)).toEqual([runId]);
    expect(JSON.parse(first.text)).toEqual({
      runId,
      status: 'running',
      statusUrl: `${stack.baseUrl}/v1/runs/${runId}`,
      eventsUrl: `${stack.baseUrl}/v1/runs/${runId}/events`,
    });
  });

  it('stands in the list, newest first, found by what it is, and pages hold each of them once', async () => {
    await alice.register(chain('listed', [noop('a')]));
    const started: string[] = [];
    for (const tag of ['odd', 'even', 'odd', 'even', 'odd']) started.unshift(await alice.start('listed', {}, { more: { tags: [tag] } }));
    await Promise.all(started.map((runId) => alice.ended(runId)));
    const list = async (query: string) =>
      alice.get<{ runs: { runId: string; status: RunSnapshot['status'] }[]; nextCursor?: string }>(
        `/v1/host/isthmus/runs?workflowId=listed${query}`,
      );
    expect((await list('')).runs.map(({ runId }) => runId)).toEqual(started);
    expect((await list('&tag=even')).runs.map(({ runId }) => runId)).toEqual([started[1], started[3]]);
    expect((await list('&status=completed')).runs).toHaveLength(5);
    expect((await list('&status=failed,cancelled')).runs).toEqual([]);
    const pages: string[] = [];
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const page = await list(`&limit=2${cursor && `&cursor=${cursor}`}`);
      pages.push(...page.runs.map(({ runId }) => runId));
      cursor = page.nextCursor;
    }
    expect(pages).toEqual(started);
  });
});

describe('a remote server that asks back', () => {
  it('suspends the node; the answer goes out with its state as it came, as the same logical call', async () => {
    await alice.mount('peer', { url: peer.url });
    await alice.register(chain('asking', [call('peer', 'needs_input', '{"rounds": 2}')]));
    const runId = await alice.start('asking');
    for (const name of ['Ada', 'Grace']) {
      await alice.until(runId, (status) => status === 'waiting-input');
      const { interrupt } = await alice.run(runId);
      expect(interrupt).toMatchObject({
        kind: 'clarification',
        nodeId: 'call',
        metadata: { mcp: { serverId: 'peer', toolName: 'needs_input' } },
      });
      await alice.resolve(runId, 'call', { answers: { name } });
    }
    expect(await alice.ended(runId)).toBe('completed');
    // The peer signs its state: had one byte of it changed, or an answer got lost, this would not be its last word.
    expect(await alice.run(runId)).toMatchObject({ variables: { call: { result: 'hello Ada, Grace', contentTrust: 'untrusted' } } });
    const calls = peer.calls('needs_input');
    const ids = calls.map(({ headers, body }) => [
      headers['idempotency-key'],
      (body as { params: { _meta: Record<string, unknown> } }).params._meta['dev.isthmus/logicalInvocationId'],
    ]);
    expect(calls).toHaveLength(3);
    expect(new Set(ids.flat()).size).toBe(1);
    expect(new Set(calls.map(({ body }) => (body as { id: unknown }).id)).size).toBe(3);
    const text = JSON.stringify(await alice.events(runId));
    expect(text).not.toContain('hello Ada');
  }, 30_000);

  it('asks whoever called the workflow as a tool, and hears the answer', async () => {
    await alice.register(chain('introducing', [tool('introduce'), call('peer', 'needs_input', '{"rounds": 1}')]));
    const asked: string[] = [];
    const client = await officialClient(stack.mcpUrl, stack.keys.primary, (message) => {
      asked.push(message);
      return { action: 'accept', content: { name: 'Mary' } };
    });
    try {
      const result = await client.callTool({ name: 'introduce' });
      expect(asked).toEqual(['Who are you?']);
      expect(JSON.stringify(result.content)).toContain('hello Mary');
    } finally {
      await client.close();
    }
  }, 30_000);

  it('is never spoken to in a revision that its mount does not allow', async () => {
    await alice.mount('strict', { url: everything.url });
    const refused = await alice.ask('GET', '/v1/host/isthmus/mounts/strict/tools');
    expect([refused.status, JSON.parse(refused.text)]).toEqual([400, expect.objectContaining({ error: 'interop_version_unsupported' })]);
    await alice.register(chain('downgrade', [call('strict', 'echo', '{"message": "hi"}')]));
    const runId = await alice.start('downgrade');
    expect(await alice.ended(runId)).toBe('failed');
    expect((await alice.run(runId)).error).toMatchObject({ code: 'interop_version_unsupported' });
  }, 30_000);

  it.each(['http://10.0.0.1/mcp', 'http://169.254.169.254/mcp', 'http://[fd00::1]/mcp', 'http://192.168.1.1:8080/mcp'])(
    'may not stand at %s',
    async (url) => {
      const refused = await alice.ask('PUT', '/v1/host/isthmus/mounts/inside', { body: { url } });
      expect([refused.status, JSON.parse(refused.text)]).toEqual([403, expect.objectContaining({ error: 'egress_denied' })]);
    },
  );
});

describe('a graph', () => {
  it('runs branches side by side, joins them, takes the edge whose condition holds and skips the other', async () => {
    await alice.register({
      id: 'branches',
      name: 'branches',
      variables: [{ name: 'n', type: 'number', required: true }],
      nodes: [
        noop('start'),
        delay(50, 'left'),
        node('right', 'core.setVariable', { variableName: 'seen', value: true }),
        node('broken', 'core.fail', { code: 'as_planned' }),
        noop('rescue'),
        noop('join'),
        noop('many'),
        noop('few'),
      ],
      edges: [
        { id: '1', sourceNodeId: 'start', targetNodeId: 'left' },
        { id: '2', sourceNodeId: 'start', targetNodeId: 'right' },
        { id: '3', sourceNodeId: 'start', targetNodeId: 'broken' },
        { id: '4', sourceNodeId: 'broken', targetNodeId: 'rescue', triggerRule: 'any_failed' },
        { id: '5', sourceNodeId: 'left', targetNodeId: 'join' },
        { id: '6', sourceNodeId: 'right', targetNodeId: 'join' },
        {
          id: '7',
          sourceNodeId: 'join',
          targetNodeId: 'many',
          condition: { type: 'expression', expression: 'variables.n > 3 && variables.seen' },
        },
        { id: '8', sourceNodeId: 'join', targetNodeId: 'few', condition: { type: 'expression', expression: 'variables.n <= 3' } },
      ],
    });
    const runId = await alice.start('branches', { n: 5 });
    expect(await alice.ended(runId)).toBe('completed');
    const { nodeStates } = await alice.run(runId);
    const statuses = Object.fromEntries(Object.entries(nodeStates).map(([id, { status }]) => [id, status]));
    expect(statuses).toMatchObject({
      left: 'completed',
      right: 'completed',
      broken: 'failed',
      rescue: 'completed',
      join: 'completed',
      many: 'completed',
      few: 'skipped',
    });
    const order = (await alice.events(runId)).map(named);
    expect(order.indexOf('node.started join')).toBeGreaterThan(order.indexOf('node.completed left'));
    expect(order.indexOf('node.completed right')).toBeLessThan(order.indexOf('node.completed left'));
  });
});

it('writes no key and nothing of a call into any log', () => {
  expect(stack.logged.length).toBeGreaterThan(0);
  for (const secret of [...Object.values(stack.keys), ARGUMENT, 'isthmuses', 'land bridges', 'Grace'])
    expect(stack.logged.filter((line) => line.includes(secret))).toEqual([]);
});
