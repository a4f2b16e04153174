// The load, in a process of its own so that its CPU is not taken for a service's. Closed loop: `concurrency` lanes, each does one
// thing after the other. Anything but the right answer ends the measurement: a bench of errors measures nothing.
import { connect } from '@nats-io/transport-node';
import pg from 'pg';
import { Pool } from 'undici';
import { serve } from './worker.mjs';

const PATIENCE_MS = 15_000;
const poolFor = (origin, connections) =>
  new Pool(origin, { connections, pipelining: 1, headersTimeout: PATIENCE_MS, bodyTimeout: PATIENCE_MS });

async function answer(pool, options, status) {
  const response = await pool.request(options);
  const text = await response.body.text();
  if (response.statusCode !== status)
    throw new Error(`${options.method} ${options.path} answered ${response.statusCode}: ${text.slice(0, 500)}`);
  return text;
}

const ENDS = /^event: (run\.(?:completed|failed|cancelled))$/m;

/** What each kind of load does: prepared once, then `once` per operation; `once` may say itself how long what counts took. */
const KINDS = {
  /** Creates a run and watches it over SSE until its last event is seen. */
  run: async ({ origin, key, workflowId, concurrency }) => {
    const pool = poolFor(origin, concurrency);
    const authorization = `Bearer ${key}`;
    const create = {
      method: 'POST',
      path: '/v1/runs',
      headers: { authorization, 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ workflowId }),
    };
    const once = async () => {
      const began = performance.now();
      const { runId } = JSON.parse(await answer(pool, create, 201));
      const watch = { method: 'GET', path: `/v1/runs/${runId}/events`, headers: { authorization, accept: 'text/event-stream' } };
      const { statusCode, body } = await pool.request(watch);
      let text = '';
      let took;
      for await (const chunk of body.setEncoding('utf8')) {
        text += chunk;
        if (took === undefined && ENDS.test(text)) took = performance.now() - began;
      }
      if (statusCode !== 200 || ENDS.exec(text)?.[1] !== 'run.completed')
        throw new Error(`the events of run ${runId} (${statusCode}): ${text.slice(-500)}`);
      return took;
    };
    return { once, close: () => pool.close() };
  },

  /** One MCP request, the same bytes for everyone. */
  mcp: async ({ origin, path, key, request: { headers, body, expect }, concurrency }) => {
    const pool = poolFor(origin, concurrency);
    const options = { method: 'POST', path, headers: { ...headers, authorization: `Bearer ${key}` }, body };
    let bytes = 0;
    const once = async () => {
      const text = await answer(pool, options, 200);
      bytes = text.length;
      if (!text.includes(expect) || text.includes('"isError":true')) throw new Error(`not what was asked for: ${text.slice(0, 500)}`);
    };
    return { once, close: () => pool.close(), facts: () => ({ bytes }) };
  },

  /** A single-row insert, committed. */
  commit: async ({ databaseUrl, concurrency }) => {
    const clients = Array.from({ length: concurrency }, () => new pg.Client({ connectionString: databaseUrl }));
    await Promise.all(clients.map((client) => client.connect()));
    const insert = { name: 'floor', text: 'insert into public.bench_floor (payload) values ($1)', values: ['x'.repeat(300)] };
    return {
      once: async (lane) => void (await clients[lane].query(insert)),
      close: () => Promise.all(clients.map((client) => client.end())),
    };
  },

  /** A request and its reply over NATS. */
  request: async ({ natsUrl }) => {
    const connection = await connect({ servers: natsUrl });
    const payload = Buffer.alloc(300, 'x');
    return {
      once: async () => void (await connection.request('bench.echo', payload, { timeout: PATIENCE_MS })),
      close: () => connection.close(),
    };
  },
};

async function measure({ kind, concurrency, ms, ...given }) {
  const { once, close, facts } = await KINDS[kind]({ ...given, concurrency });
  const latencies = [];
  let isBroken = false;
  const began = performance.now();
  const lane = async (index) => {
    while (!isBroken && performance.now() - began < ms) {
      const at = performance.now();
      const took = await once(index);
      latencies.push(took ?? performance.now() - at);
    }
  };
  try {
    await Promise.all(
      Array.from({ length: concurrency }, (_, index) =>
        lane(index).catch((error) => {
          isBroken = true;
          throw error;
        }),
      ),
    );
    const seconds = (performance.now() - began) / 1_000;
    return { ops: latencies.length, seconds, latencies, ...facts?.() };
  } finally {
    await close();
  }
}

/** Work that is the same on every machine and every day: JSON there and back, as services do all day. */
async function calibrate({ ms }) {
  const text = JSON.stringify({
    events: Array.from({ length: 20 }, (_, sequence) => ({ sequence, type: 'node.completed', at: sequence * 1e6 })),
  });
  const before = process.cpuUsage();
  const began = performance.now();
  let ops = 0;
  for (; performance.now() - began < ms; ops += 1) JSON.stringify(JSON.parse(text));
  const { user, system } = process.cpuUsage(before);
  return { ops, cpuMs: (user + system) / 1_000 };
}

serve({ measure, calibrate });
