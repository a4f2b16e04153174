import { natsAddress } from '@isthmus/chassis';
import { EXCHANGE } from '@isthmus/protocol';
import { testNats } from '@isthmus/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { decodeFrame, encodeFrame, encodeText, WINDOW_BYTES } from './frames.js';
import { type ExchangeRequest, openExchange } from './open-exchange.js';
import {
  type ExchangeContext,
  type ExchangeHandler,
  type ExchangeServer,
  serveExchanges,
  type TunnelledRequest,
  wasCancelled,
} from './serve-exchanges.js';

const PASSPORT = 'a passport';
let pool: string;
let gateway: NatsConnection;
let opened: NatsConnection[];
let pools = 0;

beforeEach(async () => {
  pool = `p${process.pid}x${pools++}`;
  opened = [];
  gateway = await open();
});
afterEach(async () => {
  await Promise.all(opened.map((connection) => connection.close()));
});

async function open(): Promise<NatsConnection> {
  const connection = await connect({ ...natsAddress(testNats()) });
  opened.push(connection);
  return connection;
}
const replica = async (
  handler: ExchangeHandler,
  options?: { maxInFlight?: number },
): Promise<ExchangeServer & { connection: NatsConnection }> => {
  const connection = await open();
  return { connection, ...(await serveExchanges(connection, pool, handler, options)) };
};
const ask = (rest: Partial<ExchangeRequest> = {}) =>
  openExchange(gateway, pool, {
    method: 'POST',
    url: '/mcp',
    headers: [['content-type', 'application/json']],
    passport: PASSPORT,
    ...rest,
  });
const whole = (body: string, status = 200) => ({ status, headers: [['x-a', 'b']] as [string, string][], body: encodeText(body) });

async function all(body: AsyncIterable<Uint8Array> | Uint8Array | undefined): Promise<Buffer> {
  if (!body) return Buffer.alloc(0);
  if (body instanceof Uint8Array) return Buffer.from(body);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}
/** A promise with its ends, to hold a handler at a place. */
function gate<T = void>() {
  let pass!: (value: T) => void;
  const reached = new Promise<T>((resolve) => {
    pass = resolve;
  });
  return { reached, pass };
}
const pattern = (size: number): Buffer => Buffer.from(Uint8Array.from({ length: size }, (_, at) => (at * 31 + (at >> 8)) % 256));
async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
const aborted = (signal: AbortSignal): Promise<void> =>
  signal.aborted ? Promise.resolve() : new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

describe('an exchange', () => {
  it('carries method, url, headers, body and passport there, and status, headers and body back', async () => {
    let seen: (TunnelledRequest & { passport: string }) | undefined;
    await replica(async (request, { passport }) => {
      seen = { ...request, passport };
      return whole('hello', 418);
    });
    const reply = await ask({ body: encodeText('question') });
    expect(reply.status).toBe(418);
    expect(reply.headers).toEqual([['x-a', 'b']]);
    expect((await all(reply.body)).toString()).toBe('hello');
    expect(reply.whole && Buffer.from(reply.whole).toString()).toBe('hello');
    expect(seen).toMatchObject({ method: 'POST', url: '/mcp', headers: [['content-type', 'application/json']], passport: PASSPORT });
    expect((await all(seen?.body)).toString()).toBe('question');
  });

  it('is one message out and one back when it is small and quick', async () => {
    await replica(async () => Response.json({ answer: 42 }));
    await ask();
    const before = gateway.stats();
    const reply = await ask({ body: encodeText('{}') });
    expect(JSON.parse((await all(reply.body)).toString())).toEqual({ answer: 42 });
    const after = gateway.stats();
    expect({ out: after.outMsgs - before.outMsgs, in: after.inMsgs - before.inMsgs }).toEqual({ out: 1, in: 1 });
  });

  it('carries large bodies both ways, byte for byte', async () => {
    await replica(async ({ body }) => ({ status: 200, headers: [], body: await all(body) }));
    const sent = pattern(3 * 1024 * 1024 + 11);
    expect((await all((await ask({ body: sent })).body)).equals(sent)).toBe(true);
    expect((await all((await ask({ body: inPieces(sent, 100_000) })).body)).equals(sent)).toBe(true);
  });

  it('hands over pieces of a stream as they come', async () => {
    const second = gate();
    await replica(
      async () =>
        new Response(
          new ReadableStream({
            async start(controller) {
              controller.enqueue(encodeText('one'));
              await second.reached;
              controller.enqueue(encodeText('two'));
              controller.close();
            },
          }),
        ),
    );
    const reader = (await ask()).body[Symbol.asyncIterator]();
    expect(Buffer.from((await reader.next()).value ?? []).toString()).toBe('one');
    second.pass();
    expect(Buffer.from((await reader.next()).value ?? []).toString()).toBe('two');
    expect((await reader.next()).done).toBe(true);
  });

  it('stops the producer when the client does not read, and goes on when it does', async () => {
    const piece = pattern(64 * 1024);
    let produced = 0;
    const stuck = gate();
    const source = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          await new Promise((resolve) => setImmediate(resolve));
          produced += piece.length;
          controller.enqueue(piece);
          if (produced >= 4 * WINDOW_BYTES) controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    await replica(async () => {
      setTimeout(stuck.pass, 300);
      return new Response(source);
    });
    const reply = await ask();
    await stuck.reached;
    expect(produced).toBeLessThanOrEqual(WINDOW_BYTES + 2 * piece.length);
    expect((await all(reply.body)).length).toBe(4 * WINDOW_BYTES);
  });

  it('stops a client that sends when the handler does not read', async () => {
    const read = gate();
    await replica(async ({ body }) => {
      await read.reached;
      return whole(String((await all(body)).length));
    });
    let sent = 0;
    const stalled = gate();
    async function* source() {
      for (let count = 0; count < 20; count++) {
        sent += 65_536;
        yield pattern(65_536);
        if (count === 3) setTimeout(stalled.pass, 200);
      }
    }
    const reply = ask({ body: source() });
    await stalled.reached;
    expect(sent).toBeLessThanOrEqual(WINDOW_BYTES + 65_536);
    read.pass();
    expect((await all((await reply).body)).toString()).toBe(String(20 * 65_536));
  });
});

describe('a client that goes away', () => {
  it.each([
    ['before the replica has accepted', 0],
    ['while the handler works', 60],
  ])('%s is heard by the handler', async (_, afterMs) => {
    const started = gate<ExchangeContext>();
    const { inFlight } = await replica(async (_request, context) => {
      started.pass(context);
      await aborted(context.signal);
      return whole('too late');
    });
    const client = new AbortController();
    const reply = ask({ signal: client.signal });
    const { signal } = await started.reached;
    setTimeout(() => client.abort(new Error('client gone')), afterMs);
    await expect(reply).rejects.toThrow('client gone');
    await aborted(signal);
    expect(wasCancelled(signal)).toBe(true);
    expect(inFlight()).toBe(0);
  });

  it('in the middle of a stream ends the stream at its source', async () => {
    const ended = gate();
    await replica(
      async () =>
        new Response(new ReadableStream({ start: (controller) => controller.enqueue(encodeText('first')), cancel: () => ended.pass() })),
    );
    const client = new AbortController();
    const { body } = await ask({ signal: client.signal });
    const reader = body[Symbol.asyncIterator]();
    await reader.next();
    client.abort(new Error('client gone'));
    await expect(reader.next()).rejects.toThrow('client gone');
    await ended.reached;
  });

  it('by giving up the body is heard as well', async () => {
    const ended = gate();
    await replica(
      async () =>
        new Response(new ReadableStream({ start: (controller) => controller.enqueue(encodeText('first')), cancel: () => ended.pass() })),
    );
    for await (const _ of (await ask()).body) break;
    await ended.reached;
  });

  it('after the answer is too late to cancel anything', async () => {
    let signal: AbortSignal | undefined;
    await replica(async (_request, context) => {
      signal = context.signal;
      return whole('done');
    });
    const client = new AbortController();
    await ask({ signal: client.signal });
    client.abort();
    await ask();
    expect(signal?.aborted).toBe(false);
  });
});

describe('a replica', () => {
  it('that is not there is known at once', async () => {
    const before = performance.now();
    await expect(ask()).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(performance.now() - before).toBeLessThan(1_000);
  });

  it('that dies in mid-stream is noticed by its silence', async () => {
    const { connection } = await replica(
      async () => new Response(new ReadableStream({ start: (controller) => controller.enqueue(encodeText('first')) })),
    );
    const reader = (await ask({ heartbeatMs: 50 })).body[Symbol.asyncIterator]();
    await reader.next();
    const before = performance.now();
    await connection.close();
    await expect(reader.next()).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(performance.now() - before).toBeLessThan(1_000);
  });

  it('that works for long is not taken for dead', async () => {
    await replica(async () => {
      await new Promise((resolve) => setTimeout(resolve, 400));
      return whole('slow');
    });
    expect((await ask({ heartbeatMs: 50 })).status).toBe(200);
  });

  it('hears of a gateway that died, and does not take that for a client that went away', async () => {
    const started = gate<ExchangeContext>();
    await replica(async (_request, context) => {
      started.pass(context);
      await aborted(context.signal);
      return whole('');
    });
    ask({ heartbeatMs: 50 }).catch(() => undefined);
    const { signal } = await started.reached;
    await gateway.close();
    await aborted(signal);
    expect(wasCancelled(signal)).toBe(false);
  });

  it('whose handler throws answers with the error, without saying more than it may', async () => {
    await replica(async () => {
      throw new Error('password=hunter2');
    });
    await expect(ask()).rejects.toMatchObject({ code: 'internal_error', message: expect.not.stringContaining('hunter2') as unknown });
  });

  it('that has enough to do says so', async () => {
    const hold = gate();
    await replica(
      async () => {
        await hold.reached;
        return whole('first');
      },
      { maxInFlight: 1 },
    );
    const first = ask();
    await expect(ask()).rejects.toMatchObject({ code: 'service_unavailable' });
    hold.pass();
    expect((await first).status).toBe(200);
  });

  it('shares the load with its like', async () => {
    const served = [0, 0];
    for (const index of [0, 1])
      await replica(async () => {
        served[index]!++;
        return whole('ok');
      });
    await Promise.all(Array.from({ length: 60 }, () => ask()));
    expect(served[0]! + served[1]!).toBe(60);
    expect(Math.min(...served)).toBeGreaterThan(5);
  });

  it('that drains takes nothing new, finishes what it has, and tells its handlers', async () => {
    const started = gate<ExchangeContext>();
    const { drain } = await replica(async (_request, context) => {
      started.pass(context);
      await aborted(context.draining);
      return whole('finished');
    });
    const reply = ask();
    await started.reached;
    const drained = drain(5_000);
    expect((await all((await reply).body)).toString()).toBe('finished');
    await drained;
    await expect(ask()).rejects.toMatchObject({ code: 'service_unavailable' });
  });

  it('that stops without waiting ends its exchanges, which is not a cancel', async () => {
    const started = gate<ExchangeContext>();
    const { drain } = await replica(async (_request, context) => {
      started.pass(context);
      await aborted(context.signal);
      return whole('');
    });
    const reply = ask();
    reply.catch(() => undefined);
    const { signal } = await started.reached;
    await drain(0);
    await expect(reply).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(wasCancelled(signal)).toBe(false);
  });
});

describe('what arrives', () => {
  it('with a gap ends the exchange instead of leaving a hole', async () => {
    const connection = await open();
    connection.subscribe(EXCHANGE.open(pool), {
      callback: (_error, message) => {
        message.respond(encodeFrame('accept', 0, encodeText('nowhere')));
        message.respond(encodeFrame('data', 2, encodeText('the second piece')));
      },
    });
    await connection.flush();
    await expect(ask()).rejects.toMatchObject({ code: 'service_unavailable', message: 'A part of the exchange was lost on the way.' });
  });

  it('beyond the window ends the exchange instead of filling memory', async () => {
    const connection = await open();
    connection.subscribe(EXCHANGE.open(pool), {
      callback: (_error, message) => {
        message.respond(encodeFrame('head', 0, encodeHeadOf(200)));
        for (let number = 1; number <= 5; number++) message.respond(encodeFrame('data', number, new Uint8Array(65_536)));
      },
    });
    await connection.flush();
    const { body } = await ask();
    const lateReader = body[Symbol.asyncIterator]();
    await flushed();
    await expect(lateReader.next()).rejects.toMatchObject({ code: 'service_unavailable' });
  });

  it('is answered by a deadline when nobody speaks', async () => {
    const connection = await open();
    connection.subscribe(EXCHANGE.open(pool), { callback: () => undefined });
    await connection.flush();
    await expect(ask({ deadlineMs: 50 })).rejects.toMatchObject({ code: 'service_unavailable' });
  });

  it('too late for the gateway is given up, which is not a client that went away', async () => {
    const started = gate<ExchangeContext>();
    await replica(async (_request, context) => {
      started.pass(context);
      await aborted(context.signal);
      return whole('');
    });
    const reply = ask({ deadlineMs: 100 });
    const { signal } = await started.reached;
    await expect(reply).rejects.toMatchObject({ code: 'service_unavailable' });
    await aborted(signal);
    expect(wasCancelled(signal)).toBe(false);
  });

  it('after the end is dropped, and nothing is said about it', async () => {
    const words: string[] = [];
    const connection = await open();
    const inbox = `${pool}.inbox`;
    connection.subscribe(inbox, { callback: (_error, message) => void words.push(decodeFrame(message.data)?.kind ?? '?') });
    connection.subscribe(EXCHANGE.open(pool), {
      callback: (_error, message) => {
        message.respond(encodeFrame('accept', 0, encodeText(inbox)));
        message.respond(encodeFrame('head', 1, encodeHeadOf(200)));
        message.respond(encodeFrame('end', 2));
        message.respond(encodeFrame('data', 3, encodeText('more')));
      },
    });
    await connection.flush();
    expect((await all((await ask()).body)).length).toBe(0);
    await flushed();
    expect(words).toEqual([]);
  });
});

const encodeHeadOf = (status: number): Uint8Array => {
  const json = encodeText(JSON.stringify({ status, headers: [] }));
  return Buffer.concat([Buffer.from([0, 0, 0, json.length]), json]);
};
const flushed = async (): Promise<void> => {
  for (const connection of opened) await connection.flush();
};
