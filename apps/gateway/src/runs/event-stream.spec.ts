import { Writable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { toRunEvent, WopError } from '@isthmus/protocol';
import { callerOf } from '@isthmus/testing';
import type { Asker } from '../auth/asker.js';
import { EventStream, type StreamPage } from './event-stream.js';
import type { Page } from './run-reader.js';
import { showsAll } from './stream-modes.js';

/** The far end of a connection, as slow as the test wants. */
class Socket extends Writable {
  readonly sent: string[] = [];
  headersSent = false;
  private readonly held: (() => void)[] = [];
  constructor(private readonly isSlow = false) {
    super({ decodeStrings: false });
  }
  writeHead(): this {
    this.headersSent = true;
    return this;
  }
  flushHeaders(): void {}
  override _write(chunk: string, _encoding: string, done: () => void): void {
    this.sent.push(chunk);
    if (this.isSlow) this.held.push(done);
    else done();
  }
  drainOne(): void {
    this.held.shift()?.();
  }
}

const event = (sequence: number, text = '') => toRunEvent('r', sequence, new Date(0), { type: 'node.started', payload: { text } });
const page = (from: number, next: number, more: Partial<Page & { more: boolean }> = {}): Page & { more: boolean } => ({
  from,
  next,
  events: Array.from({ length: next - from }, (_, at) => event(from + at)),
  isOver: false,
  more: false,
  ...more,
});
const asker = (renew: () => Promise<Asker> = async () => same): Asker => ({ caller: callerOf(), passport: 'p', renew });
const same: Asker = asker();

type How = { readonly who?: Asker; readonly rereads?: boolean; readonly bufferMs?: number };
function open(socket: Socket, read: (from: number) => Promise<StreamPage>, { who = same, ...how }: How = {}) {
  const reply = { raw: socket, hijack: () => reply } as unknown as FastifyReply;
  let closes = 0;
  const stream = new EventStream(reply, { asker: who, from: 0, shows: showsAll, read: (_, from) => read(from), ...how }, () => {
    closes += 1;
  });
  return { stream, opened: stream.open(), closes: () => closes };
}
const idsOf = (socket: Socket): number[] => [...socket.sent.join('').matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
});
afterEach(() => {
  jest.useRealTimers();
});

describe('the stream of one client', () => {
  it('drops what is offered twice', async () => {
    const socket = new Socket();
    const { stream, opened } = open(socket, async () => page(0, 3));
    await opened;
    stream.offer(page(1, 4));
    stream.offer(page(2, 4));
    expect(idsOf(socket)).toEqual([0, 1, 2, 3]);
  });

  it('reads for itself what an offer leaves out', async () => {
    const socket = new Socket();
    const { stream, opened } = open(socket, async (from) => page(from, from === 0 ? 1 : 6));
    await opened;
    stream.offer(page(4, 5));
    await turns();
    expect(idsOf(socket)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('reads again when it was offered something while it read', async () => {
    const socket = new Socket();
    const lengths = [2, 3];
    const { stream, opened } = open(socket, async (from) => page(from, lengths.shift() ?? from));
    stream.offer(page(2, 3));
    await opened;
    expect(idsOf(socket)).toEqual([0, 1, 2]);
  });

  it('ends after the last event, and says so once', async () => {
    const socket = new Socket();
    const { stream, opened, closes } = open(socket, async () => page(0, 2, { isOver: true }));
    await opened;
    stream.offer(page(2, 3));
    stream.end();
    expect([closes(), socket.writableEnded, idsOf(socket)]).toEqual([1, true, [0, 1]]);
  });

  it('sends its first page even when it is ended while that is read', async () => {
    const socket = new Socket();
    const { stream, opened } = open(socket, async () => page(0, 1));
    stream.end();
    await opened;
    expect([idsOf(socket), socket.writableEnded]).toEqual([[0], true]);
  });

  it('fails as a whole when its first page cannot be read', async () => {
    const { opened, closes } = open(new Socket(), async () => {
      throw new WopError('not_found', 'x');
    });
    await expect(opened).rejects.toMatchObject({ code: 'not_found' });
    expect(closes()).toBe(1);
  });

  it('waits for a client that catches up slowly', async () => {
    const socket = new Socket(true);
    const reads: number[] = [];
    const { opened } = open(socket, async (from) => {
      reads.push(from);
      return page(from, from + 1, { more: from < 1, events: [event(from, 'x'.repeat(100_000))] });
    });
    await turns();
    expect(reads).toEqual([0]);
    socket.drainOne();
    await new Promise((resolve) => setImmediate(resolve));
    expect(reads).toEqual([0, 1]);
    socket.drainOne();
    await opened;
  });

  it('cuts off a live client that lets a megabyte pile up', async () => {
    const socket = new Socket(true);
    const { stream, opened } = open(socket, async () => page(0, 0));
    await opened;
    for (let sequence = 0; sequence < 12; sequence += 1)
      stream.offer(page(sequence, sequence + 1, { events: [event(sequence, 'x'.repeat(100_000))] }));
    expect(socket.destroyed).toBe(true);
  });
});

describe('a quiet stream', () => {
  it('is kept alive every 15 seconds, without an id', async () => {
    const socket = new Socket();
    const { stream, opened } = open(socket, async () => page(0, 1));
    await opened;
    jest.advanceTimersByTime(45_000);
    expect(socket.sent.filter((text) => text === ':keepalive\n\n')).toHaveLength(3);
    stream.end();
    jest.advanceTimersByTime(45_000);
    expect(socket.sent.filter((text) => text === ':keepalive\n\n')).toHaveLength(3);
  });

  it('ends when its key has expired meanwhile', async () => {
    const socket = new Socket();
    const { opened, closes } = open(socket, async () => page(0, 1), {
      who: asker(async () => {
        throw new WopError('key_expired', 'x');
      }),
    });
    await opened;
    jest.advanceTimersByTime(15_000);
    await turns();
    expect(closes()).toBe(1);
  });

  it('forgives authz one absence, not two', async () => {
    const { opened, closes } = open(new Socket(), async () => page(0, 1), {
      who: asker(async () => {
        throw new WopError('service_unavailable', 'x');
      }),
    });
    await opened;
    jest.advanceTimersByTime(15_000);
    await turns();
    expect(closes()).toBe(0);
    jest.advanceTimersByTime(15_000);
    await turns();
    expect(closes()).toBe(1);
  });

  it('ends at once when rights changed and cannot be confirmed', async () => {
    const { stream, opened, closes } = open(new Socket(), async () => page(0, 1), {
      who: asker(async () => {
        throw new WopError('service_unavailable', 'x');
      }),
    });
    await opened;
    stream.recheck();
    await turns();
    expect(closes()).toBe(1);
  });
});

describe('a stream of states', () => {
  const state = (head: number): StreamPage => ({
    from: 0,
    next: head + 1,
    events: [{ sequence: head, type: 'state.snapshot' }],
    isOver: head === 9,
  });

  it('reads one for itself whenever something happened, and never sends what it was offered', async () => {
    const socket = new Socket();
    let head = 2;
    const { stream, opened, closes } = open(socket, async () => state(head), { rereads: true });
    await opened;
    expect(idsOf(socket)).toEqual([2]);
    head = 5;
    stream.offer(page(3, 5));
    await turns();
    stream.offer(page(5, 6));
    await turns();
    expect(idsOf(socket)).toEqual([2, 5]);
    head = 9;
    stream.offer(page(6, 10, { isOver: true }));
    await turns();
    expect([idsOf(socket), closes()]).toEqual([[2, 5, 9], 1]);
    expect(socket.sent.join('')).not.toContain('node.started');
  });
});

describe('a stream that gathers', () => {
  const framesOf = (socket: Socket): string[] => socket.sent.join('').split('\n\n').filter(Boolean);

  it('sends what came in its time as one frame', async () => {
    const socket = new Socket();
    const { stream, opened } = open(socket, async () => page(0, 2), { bufferMs: 200 });
    await opened;
    stream.offer(page(2, 3));
    expect(framesOf(socket)).toEqual([]);
    jest.advanceTimersByTime(200);
    expect(framesOf(socket)).toEqual([expect.stringMatching(/^id: 2\nevent: batch\ndata: \[.*"sequence":0.*"sequence":2.*\]$/)]);
  });

  it.each([
    ['node.suspended', 1],
    ['node.completed', 0],
  ])('does not let a node wait that asks for something: on %s it has sent %d frames', async (type, frames) => {
    const socket = new Socket();
    const { stream, opened } = open(socket, async () => page(0, 1), { bufferMs: 5_000 });
    await opened;
    stream.offer(page(1, 2, { events: [toRunEvent('r', 1, new Date(0), { type, payload: {} })] }));
    expect(framesOf(socket)).toHaveLength(frames);
  });

  it('sends what it holds when the run ends, and when it is itself ended', async () => {
    const over = new Socket();
    const first = open(over, async () => page(0, 1), { bufferMs: 5_000 });
    await first.opened;
    first.stream.offer(page(1, 2, { isOver: true }));
    expect([framesOf(over).length, over.writableEnded]).toEqual([1, true]);

    const cut = new Socket();
    const second = open(cut, async () => page(0, 1), { bufferMs: 5_000 });
    await second.opened;
    second.stream.end();
    expect([framesOf(cut).length, cut.writableEnded, jest.getTimerCount()]).toEqual([1, true, 0]);
  });

  it('holds no more than a page of a long log', async () => {
    const socket = new Socket();
    const { opened } = open(socket, async (from) => page(from, from + 2, { more: from < 4 }), { bufferMs: 5_000 });
    await opened;
    expect(framesOf(socket)).toHaveLength(2);
  });
});
