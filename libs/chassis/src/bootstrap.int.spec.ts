import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { createInterface } from 'node:readline';
import { testConnection, testNats, until } from '@isthmus/testing';
import { afterEach, describe, expect, it } from '@jest/globals';

/** A whole service in a process of its own, from what `npm test` has built. Its handler answers when it is told to. */
const SERVICE = `
  import { setTimeout as sleep } from 'node:timers/promises';
  import { Controller, Module } from '@nestjs/common';
  import { MessagePattern } from '@nestjs/microservices';
  import { BaseConfig, ChassisModule, loadConfig, startService } from '@isthmus/chassis';
  const config = loadConfig(BaseConfig);
  class Slow {
    async wait(ms) { console.log('handling'); await sleep(ms); return { waited: ms }; }
    fail() { Promise.reject(new Error('nobody catches this')); return null; }
  }
  for (const [name, subject] of [['wait', 'test.wait'], ['fail', 'test.fail']])
    MessagePattern(subject)(Slow.prototype, name, Object.getOwnPropertyDescriptor(Slow.prototype, name));
  Controller()(Slow);
  class App {}
  Module({ imports: [ChassisModule.forRoot(config)], controllers: [Slow] })(App);
  await startService({ config, module: App });
`;

type Service = {
  child: ChildProcess;
  lines: string[];
  said(text: string): Promise<unknown>;
  ready(): Promise<number>;
  ended: Promise<readonly [number | null, string | null]>;
};

const stops: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

function start(environment: Record<string, string>): Service {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', SERVICE], {
    cwd: new URL('../../..', import.meta.url),
    env: { PATH: process.env['PATH'], SERVICE_NAME: 'engine', ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  if (child.stdout) createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  const ended = once(child, 'exit') as Promise<[number | null, string | null]>;
  stops.push(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const said = (text: string) =>
    until(() => lines.find((line) => line.includes(text)), { what: `"${text}" among ${lines.join('\n')}`, timeoutMs: 10_000 });
  const healthPort = async () => (JSON.parse(String(await said('health answers'))) as { port: number }).port;
  return { child, lines, said, ready: async () => (await fetch(`http://127.0.0.1:${await healthPort()}/ready`)).status, ended };
}

/** NATS behind a door that the test opens and shuts. */
async function door() {
  const { hostname, port: natsPort } = new URL(testNats());
  const sockets = new Set<net.Socket>();
  const make = () =>
    net.createServer((inside) => {
      const outside = net.connect(Number(natsPort), hostname);
      for (const socket of [inside, outside]) {
        sockets.add(socket);
        socket.on('error', () => {}).on('close', () => sockets.delete(socket));
      }
      inside.pipe(outside).pipe(inside);
    });
  let server = make().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  const shut = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  const open = async () => {
    server = make().listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  await shut();
  const url = new URL(testNats());
  url.port = String(port);
  stops.push(() => server.listening && shut());
  return { url: url.href, open, shut };
}

describe('a service process', () => {
  it('waits for NATS instead of dying without it, and is ready exactly while it can be reached', async () => {
    const { url, open, shut } = await door();
    const service = start({ NATS_URL: url });
    await service.said('waiting for nats');
    expect(await service.ready()).toBe(503);
    await open();
    await service.said('listening');
    expect(await service.ready()).toBe(200);
    await shut();
    await until(async () => (await service.ready()) === 503);
    await open();
    await until(async () => (await service.ready()) === 200, { timeoutMs: 10_000 });
    expect(service.lines.filter((line) => line.includes('waiting for nats'))).toHaveLength(1);
  });

  it('answers what it has begun before it ends with 0 on a signal', async () => {
    const service = start({ NATS_URL: testNats() });
    await service.said('listening');
    const client = await testConnection();
    stops.push(() => client.close());
    const answer = client.request('test.wait', JSON.stringify({ id: '1', data: 300 }), { timeout: 5_000 });
    await service.said('handling');
    service.child.kill('SIGTERM');
    expect((await answer).json()).toMatchObject({ response: { waited: 300 } });
    expect(await service.ended).toEqual([0, null]);
    await service.said('stopped');
  });

  it('ends with 0 on a signal while it still waits', async () => {
    const { url } = await door();
    const service = start({ NATS_URL: url });
    await service.said('waiting for nats');
    service.child.kill('SIGINT');
    expect(await service.ended).toEqual([0, null]);
  });

  it('ends with 1 and one line when an error was caught by nobody', async () => {
    const service = start({ NATS_URL: testNats() });
    await service.said('listening');
    const client = await testConnection();
    stops.push(() => client.close());
    client.publish('test.fail', JSON.stringify({ id: '1', data: null }));
    expect(await service.ended).toEqual([1, null]);
    expect(service.lines.filter((line) => line.includes('unexpected fault'))).toHaveLength(1);
  });

  it('says what is wrong with its configuration and ends with 1', async () => {
    const service = start({ SERVICE_NAME: 'nobody' });
    expect(await service.ended).toEqual([1, null]);
  });
});
