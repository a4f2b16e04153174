import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type ModernPeer, modernPeer, type TestDatabase, testDatabase, testNats, until } from '@isthmus/testing';
import { Client } from './client.js';
import { type Collector, type Span, startCollector } from './collector.js';
import { call, chain, gate, text, tool } from './make.js';
import { Mount, type Result, runOf } from './mcp.js';
import { type Stack, START_MS, startStack } from './stack.js';

let stack: Stack;
let database: TestDatabase;
let peer: ModernPeer;
let collector: Collector;
let alice: Client;

/** Stands in arguments, results, questions and answers: everywhere but in a span. */
const CONTENT = 'a-canal-between-two-seas';
const SAY = '{"text": "about " + variables.topic}';

beforeAll(async () => {
  [peer, collector] = await Promise.all([modernPeer(), startCollector()]);
  database = await testDatabase();
  // On servers that somebody else runs, as with DATABASE_URL and NATS_URL.
  stack = await startStack({ env: collector.env, databaseUrl: database.adminUrl, natsUrl: testNats() });
  alice = new Client(stack.baseUrl, stack.keys.primary);
  await alice.mount('peer', { url: peer.url });
  const topic = { variables: [text('topic')] };
  await alice.register(chain('asks', [call('peer', 'echo', SAY)], topic));
  await alice.register(chain('waits', [gate(), call('peer', 'echo', SAY)], topic));
  await alice.register(chain('serves', [tool('look-up', { topic: { type: 'string' } }), call('peer', 'echo', SAY), gate()], topic));
}, START_MS);
afterAll(async () => {
  await stack?.stop();
  await database?.drop();
  await Promise.all([peer?.close(), collector?.close()]);
}, 60_000);

const context = () => {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-01` };
};
const spansOf = (traceId: string): Span[] => collector.spans.filter((span) => span.traceId === traceId);
const servicesOf = (traceId: string): string[] => [...new Set(spansOf(traceId).map(({ service }) => service))].sort();
/** Resolves when each of `services` has handed in a span of the trace, and every span's parent is there. */
const complete = (traceId: string, root: string, services: readonly string[]): Promise<unknown> =>
  until(
    () => {
      expect(servicesOf(traceId)).toEqual(expect.arrayContaining([...services]));
      const known = new Set([root, ...spansOf(traceId).map(({ spanId }) => spanId)]);
      expect(spansOf(traceId).filter(({ parentSpanId }) => !parentSpanId || !known.has(parentSpanId))).toEqual([]);
      return true;
    },
    { timeoutMs: 15_000, everyMs: 100, what: 'the trace' },
  );
/** The services from a span up to the root of its trace, each once for as long as it lasts. */
function pathOf(span: Span): string[] {
  const parent = spansOf(span.traceId).find(({ spanId }) => spanId === span.parentSpanId);
  const above = parent ? pathOf(parent) : [];
  return above.at(-1) === span.service ? above : [...above, span.service];
}
/** Version, trace, span and flags that came with the last call of the remote server. */
function lastCall(): string[] {
  const body = peer.calls('echo').at(-1)?.body as { params: { _meta: { traceparent: string } } } | undefined;
  return body?.params._meta.traceparent.split('-') ?? [];
}
/** What the remote server was told of the trace is a span of mcp-client in it. */
function expectCallIn(traceId: string): void {
  const [, told, parent] = lastCall();
  expect(told).toBe(traceId);
  const span = spansOf(traceId).find(({ spanId }) => spanId === parent) as Span;
  expect(span).toMatchObject({ service: 'mcp-client' });
  expect(pathOf(span)).toEqual(expect.arrayContaining(['engine', 'mcp-client']));
}

describe('one trace', () => {
  it('runs from an HTTP request through the services to what the remote server is told', async () => {
    const { traceId, spanId, traceparent } = context();
    const runId = await alice.start('asks', { topic: CONTENT }, { headers: { traceparent } });
    expect(await alice.ended(runId)).toBe('completed');
    await complete(traceId, spanId, ['gateway', 'engine', 'mcp-client', 'authz']);
    const [server] = spansOf(traceId).filter(({ parentSpanId }) => parentSpanId === spanId);
    expect(server).toMatchObject({ service: 'gateway', name: 'POST /v1/runs' });
    expectCallIn(traceId);
    expect(pathOf(spansOf(traceId).find(({ spanId: id }) => id === lastCall()[2]) as Span)).toEqual(['gateway', 'engine', 'mcp-client']);
  }, 30_000);

  it('is still the same when a run goes on after somebody answered in a trace of their own', async () => {
    const [started, answered] = [context(), context()];
    const runId = await alice.start('waits', { topic: CONTENT }, { headers: { traceparent: started.traceparent } });
    await alice.waiting(runId);
    await alice.must('POST', `/v1/runs/${runId}/interrupts/gate`, {
      body: { resumeValue: { action: 'accept', comment: CONTENT } },
      headers: { traceparent: answered.traceparent },
    });
    expect(await alice.ended(runId)).toBe('completed');
    await complete(started.traceId, started.spanId, ['gateway', 'engine', 'mcp-client']);
    await complete(answered.traceId, answered.spanId, ['gateway', 'engine']);
    expectCallIn(started.traceId);
    expect(servicesOf(answered.traceId)).not.toContain('mcp-client');
  }, 30_000);

  it('runs from the _meta of an MCP request, in preference to its header, into the run and beyond', async () => {
    const [meta, header] = [context(), context()];
    const mount = new Mount(stack.mcpUrl, stack.keys.primary);
    const asking = { meta: { traceparent: meta.traceparent }, headers: { traceparent: header.traceparent } };
    const question = (await mount.call('look-up', { topic: CONTENT }, {}, asking)).result as Result;
    expect(question.resultType).toBe('input_required');
    await complete(meta.traceId, meta.spanId, ['mcp-server', 'engine', 'mcp-client']);
    expectCallIn(meta.traceId);
    await complete(header.traceId, header.spanId, ['gateway']);
    const answer = { action: 'accept', content: { action: 'accept', comment: CONTENT } };
    const { result } = await mount.answer('look-up', { topic: CONTENT }, question, answer);
    expect(JSON.stringify(result)).toContain(CONTENT);
    expect((await alice.run(runOf(result as Result))).status).toBe('completed');
    expect(collector.bytes()).not.toContain((question.requestState as string).slice(0, 40));
  }, 30_000);
});

it('holds no content: no argument, result, answer, key, address of a run or SQL', () => {
  const bytes = collector.bytes();
  expect(bytes.length).toBeGreaterThan(10_000);
  for (const secret of [CONTENT, 'about ', ...Object.values(stack.keys), 'select ', 'insert into', '?streamMode', stack.databaseUrl])
    expect(bytes).not.toContain(secret);
});
