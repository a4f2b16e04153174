import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { placesOf, untilReachable } from './reachable.js';

describe('waiting for what a service stands on', () => {
  it('reads places out of URLs, without what is secret in them', () => {
    expect(placesOf('nats', 'nats://user:hunter2@one:4333, two,nats://[::1]:1', 4222)).toEqual([
      { name: 'nats', host: 'one', port: 4333 },
      { name: 'nats', host: 'two', port: 4222 },
      { name: 'nats', host: '::1', port: 1 },
    ]);
  });

  it('tells once that it waits, and goes on when somebody answers there', async () => {
    const free = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => free.once('listening', resolve));
    const { port } = free.address() as AddressInfo;
    await new Promise((resolve) => free.close(resolve));

    const told: string[] = [];
    const waited = new Promise<void>((resolve, reject) => {
      const server = createServer();
      untilReachable([{ name: 'nats', host: '127.0.0.1', port }], {
        signal: new AbortController().signal,
        onWait: (problem) => {
          told.push(problem);
          server.listen(port, '127.0.0.1');
        },
      }).then(() => server.close(() => resolve()), reject);
    });
    await waited;
    expect(told).toEqual([`127.0.0.1:${port} (ECONNREFUSED)`]);
  });

  it('gives up when the process is to end', async () => {
    const controller = new AbortController();
    await untilReachable([{ name: 'nats', host: 'no-such-host.invalid', port: 1 }], {
      signal: controller.signal,
      onWait: () => controller.abort(),
    });
    expect(controller.signal.aborted).toBe(true);
  });
});
