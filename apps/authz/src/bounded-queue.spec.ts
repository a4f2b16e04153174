import { describe, expect, it } from '@jest/globals';
import { BoundedQueue } from './bounded-queue.js';

/** Tasks that end when they are told to. */
function gates() {
  const open: (() => void)[] = [];
  return { open, task: () => new Promise<void>((resolve) => open.push(resolve)) };
}
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('the bounded queue', () => {
  it('runs no more than its width at once, the rest in the order they came', async () => {
    const queue = new BoundedQueue(2, 64);
    const { open, task } = gates();
    const started: number[] = [];
    const all = [0, 1, 2, 3, 4].map((number) =>
      queue.run(() => {
        started.push(number);
        return task();
      }),
    );
    await turn();
    expect(started).toEqual([0, 1]);
    open[1]?.();
    await all[1];
    await turn();
    expect(started).toEqual([0, 1, 2]);
    for (let at = 0; at < 5; at += 1) {
      open[at]?.();
      await turn();
    }
    await Promise.all(all);
    expect(started).toEqual([0, 1, 2, 3, 4]);
  });

  it('refuses at once who finds it full, with an error that may be retried', async () => {
    const queue = new BoundedQueue(2, 64);
    const { open, task } = gates();
    const admitted = Array.from({ length: 66 }, () => queue.run(task));
    await expect(queue.run(task)).rejects.toMatchObject({ code: 'service_unavailable', status: 503, retriable: true });
    await turn();
    for (let at = 0; at < 66; at += 1) {
      open[at]?.();
      await turn();
    }
    await Promise.all(admitted);
    await expect(queue.run(async () => 'in again')).resolves.toBe('in again');
  });

  it('goes on after a task that failed', async () => {
    const queue = new BoundedQueue(1, 1);
    const failing = queue.run(() => Promise.reject(new Error('no')));
    const next = queue.run(async () => 'next');
    await expect(failing).rejects.toThrow('no');
    await expect(next).resolves.toBe('next');
  });
});
