import { describe, expect, it } from '@jest/globals';
import { Inflow, SendWindow } from './window.js';

const kb = (count: number): Uint8Array => new Uint8Array(count * 1024);
const settled = async (promise: Promise<unknown>): Promise<boolean> => {
  const marker = {};
  return (await Promise.race([promise.catch(() => undefined), new Promise((resolve) => setImmediate(resolve, marker))])) !== marker;
};

describe('SendWindow', () => {
  it('lets a sender go on only as far as the reader has taken', async () => {
    const window = new SendWindow(100);
    await window.take(80);
    const second = window.take(30);
    expect(await settled(second)).toBe(false);
    window.give(5);
    expect(await settled(second)).toBe(false);
    window.give(5);
    await second;
  });

  it('wakes a waiting sender with the reason when the exchange ends', async () => {
    const window = new SendWindow(10);
    const waiting = window.take(11);
    window.close(new Error('over'));
    await expect(waiting).rejects.toThrow('over');
    await expect(window.take(1)).rejects.toThrow('over');
  });
});

describe('Inflow', () => {
  const inflow = (log: { taken: number[]; abandoned: number }) =>
    new Inflow(
      256 * 1024,
      (bytes) => log.taken.push(bytes),
      () => {
        log.abandoned++;
      },
    );

  it('gives credit for what was read, in few messages, and never for what was not', async () => {
    const log = { taken: [] as number[], abandoned: 0 };
    const flow = inflow(log);
    for (let count = 0; count < 8; count++) expect(flow.push(kb(32))).toBe(true);
    expect(flow.push(kb(1))).toBe(false);
    const reader = flow[Symbol.asyncIterator]();
    for (let count = 0; count < 5; count++) await reader.next();
    expect(log.taken).toEqual([64 * 1024, 64 * 1024]);
    expect(flow.push(kb(128))).toBe(true);
    expect(flow.push(kb(1))).toBe(false);
  });

  it('tells when its reader went away before the end, even before it began', async () => {
    const log = { taken: [] as number[], abandoned: 0 };
    await inflow(log)[Symbol.asyncIterator]().return?.();
    expect(log.abandoned).toBe(1);
    const whole = inflow(log);
    whole.push(kb(1));
    whole.end();
    for await (const chunk of whole) expect(chunk.length).toBe(1024);
    expect(log.abandoned).toBe(1);
  });

  it('drops what has arrived when the rest will not come', async () => {
    const flow = inflow({ taken: [], abandoned: 0 });
    flow.push(kb(1));
    flow.fail(new Error('lost'));
    await expect(flow[Symbol.asyncIterator]().next()).rejects.toThrow('lost');
  });
});
