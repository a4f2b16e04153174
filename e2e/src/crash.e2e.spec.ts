import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { RunEvent } from '@isthmus/protocol';
import { type ModernPeer, modernPeer, until } from '@isthmus/testing';
import { Client } from './client.js';
import { Load } from './load.js';
import { call, chain, delay, echo, gate, noop, text, tool } from './make.js';
import { Mount, type Result, type RpcAnswer, runOf } from './mcp.js';
import { query } from './operator.js';
import { faultsIn, type Stack, START_MS, startStack } from './stack.js';

let stack: Stack;
let peer: ModernPeer;
let alice: Client;
let mount: Mount;
const load = new Load();

/** Runs that were there before the first kill and go on after the last. */
let survivor: { runId: string; seen: Promise<RunEvent[]> };
let sleeper: { runId: string; seen: Promise<RunEvent[]> };

const WORKFLOWS = [
  chain('noops', [noop('a'), noop('b'), noop('c')]),
  chain('sleeps', [noop('a'), delay(150), noop('b')]),
  chain('sleeps-long', [delay(15_000)]),
  chain('calls', [call('peer', 'slow', '{"ms": inputs.ms}')], { variables: [{ name: 'ms', type: 'number', required: true }] }),
  chain('gated', [noop('a'), gate()]),
  chain('echoes', [tool('echo', { text: { type: 'string' } }), echo('text')], { variables: [text('text')] }),
  chain('asks', [tool('ask', { n: { type: 'integer' } }), gate()]),
];
/** How long the peer takes for the call of run `n`: no two are alike, so it names the run. */
const durationOf = (n: number): number => 500 + n;
const ACCEPT = { action: 'accept' };

beforeAll(async () => {
  // Real flushes: what a client was told must survive the death of Postgres as well.
  [stack, peer] = await Promise.all([
    startStack({ isDurable: true, isKept: false, replicas: { engine: 2, 'mcp-server': 2 } }),
    modernPeer(),
  ]);
  alice = new Client(stack.baseUrl, stack.keys.primary);
  mount = new Mount(stack.mcpUrl, stack.keys.primary);
  await alice.mount('peer', { url: peer.url, repeatUnknown: 'always' });
  for (const workflow of WORKFLOWS) await alice.register(workflow);
  survivor = await begin('gated');
  sleeper = await begin('sleeps-long');
  await alice.waiting(survivor.runId);
}, START_MS);
afterAll(async () => {
  await load.stop();
  await Promise.all([peer?.close(), stack?.stop()]);
}, 60_000);

async function begin(workflowId: string) {
  const runId = await load.start(workflowId, alice, -1, workflowId, {});
  return { runId, seen: load.follow(alice, runId) };
}

const approve = async (runId: string, key: string): Promise<void> => {
  const sent = { body: { resumeValue: ACCEPT }, headers: { 'idempotency-key': key } };
  const { status, text: said } = await load.persist('resolve', () => alice.ask('POST', `/v1/runs/${runId}/interrupts/gate`, sent));
  if (status !== 200) throw new Error(`resolve answered ${status}: ${said}`);
};

const JOBS: Readonly<Record<string, (n: number) => Promise<void>>> = {
  noops: async (n) => void (await load.follow(alice, await load.start('noops', alice, n, 'noops', {}))),
  sleeps: async (n) => void (await load.follow(alice, await load.start('sleeps', alice, n, 'sleeps', {}))),
  calls: async (n) => void (await load.follow(alice, await load.start('calls', alice, n, 'calls', { ms: durationOf(n) }))),
  gated: async (n) => {
    const runId = await load.start('gated', alice, n, 'gated', {});
    await load.follow(alice, runId, async ({ type }) => {
      if (type === 'approval.requested') await approve(runId, `approve-${n}`);
    });
  },
  echoes: async (n) => {
    const result = resultOf(await tell(n, 'echo', { text: `echo ${n}` }));
    if (JSON.stringify(result.structuredContent) !== `{"text":"echo ${n}"}`) throw new Error(`echoed ${JSON.stringify(result)}`);
    load.accepted.set(runOf(result), 'echoes');
  },
  asks: async (n) => {
    for (let result = resultOf(await tell(n, 'ask', { n })); ; ) {
      if (result.resultType === 'complete') return void load.accepted.set(runOf(result), 'asks');
      const question = result;
      const answer = await load.persist('answer', () => mount.answer('ask', { n }, question, { action: 'accept', content: ACCEPT }));
      // Its answer was taken and the word of that got lost: the call itself, under its key, still knows.
      result = resultOf(answer.error?.data?.reason === 'request_state_used' ? await tell(n, 'ask', { n }) : answer);
    }
  },
};
const tell = (n: number, name: string, args: object): Promise<RpcAnswer> =>
  load.persist('call', () => mount.call(name, args, {}, { headers: { 'idempotency-key': `${name}-${n}` } }));
const resultOf = ({ status, result, text: said }: RpcAnswer): Result => {
  if (status !== 200 || !result || result.isError) throw new Error(`call answered ${status}: ${said}`);
  return result;
};

/** When to kill: at the worst moment, where there is one. */
const MOMENTS: Readonly<Record<string, () => Promise<unknown>>> = {
  'engine-1': () =>
    until(
      async () => {
        const [driven] = await query(
          stack,
          `select from engine.runs where workflow_id = 'calls' and lease_owner like '%engine-1-%' and due_at is not null`,
        );
        return driven && peer.slow.running > 0;
      },
      { timeoutMs: 30_000, everyMs: 5, what: 'a call of a run that engine-1 drives' },
    ),
  'mcp-client-1': () => until(() => peer.slow.running > 0, { timeoutMs: 30_000, everyMs: 5, what: 'a call' }),
};

describe('under load', () => {
  it('works', async () => {
    for (const [kind, job] of Object.entries(JOBS)) load.add(kind, job);
    await load.progress(2);
    expect(load.problems).toEqual([]);
    expect(load.outages).toEqual(new Map());
  }, 60_000);

  it.each(['engine-1', 'mcp-client-1', 'mcp-server-1', 'authz-1', 'gateway-1', 'nats', 'postgres'])(
    'lives through the sudden death of %s',
    async (name) => {
      await MOMENTS[name]?.();
      const process = stack.process(name);
      const { pid } = process;
      process.signal('SIGKILL');
      const isBack = () => process.pid !== undefined && process.pid !== pid && process.isReady;
      await until(isBack, { timeoutMs: 60_000, what: `the restart of ${name}` });
      await stack.ready();
      await load.progress(2);
      expect(load.problems).toEqual([]);
    },
    120_000,
  );
});

describe('afterwards', () => {
  beforeAll(async () => {
    await load.stop();
    await approve(survivor.runId, 'survivor');
  }, 60_000);

  it('nothing else was seen from outside than connections that broke and 503', () => {
    expect(load.problems).toEqual([]);
    expect([...load.outages.keys()].filter((what) => !/: (503|E[A-Z]+|UND_ERR_SOCKET)$/.test(what))).toEqual([]);
    expect(load.outages.size).toBeGreaterThan(0);
  });

  it('a stream that was opened before the first death told everything once, and its run was decided once', async () => {
    for (const { runId, seen } of [survivor, sleeper]) {
      const events = await seen;
      expect(events).toEqual(await alice.events(runId));
      expect(events.at(-1)?.type).toBe('run.completed');
    }
  }, 60_000);

  it('every run that was accepted has completed, and there is no other: what was asked twice happened once', async () => {
    const others = `select r.run_id, r.workflow_id, r.status, e.payload from engine.runs r join engine.events e on e.run_id = r.run_id and e.sequence = r.head`;
    expect(await query(stack, `${others} where r.status <> 'completed'`)).toEqual([]);
    const runs = await query<{ run_id: string }>(stack, 'select run_id from engine.runs');
    expect(runs.map(({ run_id: runId }) => runId).sort()).toEqual([...load.accepted.keys()].sort());
  });

  it('every log is whole: from 0 without a gap to one end, which is its last word', async () => {
    const broken = await query(
      stack,
      `select r.run_id, r.head, count(*)::int as events, max(e.sequence) as last,
         count(*) filter (where e.type in ('run.completed', 'run.failed', 'run.cancelled'))::int as ends,
         max(e.sequence) filter (where e.type = 'run.completed') as ended
       from engine.runs r join engine.events e using (run_id) group by r.run_id
       having not (count(*) = r.head + 1 and min(e.sequence) = 0 and max(e.sequence) = r.head
         and count(*) filter (where e.type in ('run.completed', 'run.failed', 'run.cancelled')) = 1
         and max(e.sequence) filter (where e.type = 'run.completed') = r.head)`,
    );
    expect(broken).toEqual([]);
  });

  it('every tool was called at least once, under one logical id per call, whoever called it', async () => {
    const ids = new Map<number, Set<unknown>>();
    for (const { headers, body } of peer.calls('slow')) {
      const { arguments: args, _meta: meta } = (body as { params: { arguments: { ms: number }; _meta: Record<string, unknown> } }).params;
      const known = ids.get(args.ms) ?? new Set();
      ids.set(args.ms, known.add(headers['idempotency-key']).add(meta['dev.isthmus/logicalInvocationId']));
    }
    const called = [...load.accepted.values()].filter((kind) => kind === 'calls').length;
    expect([...ids.keys()].sort()).toEqual(Array.from({ length: called }, (_, n) => durationOf(n)).sort());
    for (const known of ids.values()) expect(known.size).toBe(1);
    // Two processes died in the middle of a call: those calls were made again.
    expect(peer.calls('slow').length).toBeGreaterThanOrEqual(called + 2);
    expect(new Set([...ids.values()].flatMap((known) => [...known])).size).toBe(called);
    const [recorded] = await query<{ logical: number; open: number }>(
      stack,
      'select count(distinct invocation_id)::int as logical, count(*) filter (where outcome is null)::int as open from engine.invocations',
    );
    expect(recorded).toEqual({ logical: called, open: 0 });
  });

  it('no service answered with a fault that nobody foresaw', () => {
    expect(faultsIn(stack).filter((line) => line.includes('"correlationId"'))).toEqual([]);
  });
});
