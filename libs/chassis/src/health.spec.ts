import { afterEach, describe, expect, it } from '@jest/globals';
import { Health } from './health.js';
import { type HealthServer, serveHealth } from './health-server.js';

describe('health', () => {
  it('is ready when every check passes, and says which does not', async () => {
    const health = new Health();
    let isUp = false;
    health.add('nats', () => {
      if (!isUp) throw new Error('nats://user:hunter2@host is away');
    });
    health.add('postgres', async () => {});
    expect(await health.ready()).toEqual({ ready: false, checks: { nats: false, postgres: true, accepting: true } });
    isUp = true;
    expect(await health.ready()).toEqual({ ready: true, checks: { nats: true, postgres: true, accepting: true } });
  });

  it('counts a check that does not come back as failed', async () => {
    const health = new Health();
    health.add('stuck', () => new Promise(() => {}));
    expect(await health.ready()).toMatchObject({ ready: false, checks: { stuck: false } });
  });

  it('is never ready again once it drains, and drains when every step has ended', async () => {
    const health = new Health();
    let finish = () => {};
    let isOver = false;
    health.onDrain(() => new Promise<void>((resolve) => (finish = resolve)));
    const drained = health.drain().then(() => (isOver = true));
    expect(await health.ready()).toEqual({ ready: false, checks: { accepting: false } });
    expect(isOver).toBe(false);
    finish();
    await drained;
  });
});

describe('the health port', () => {
  let server: HealthServer | undefined;
  afterEach(() => server?.close());
  const ask = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${server?.port}${path}`);
    return { status: response.status, body: await response.json() };
  };

  it('answers /live always and /ready by the checks, naming nothing but names', async () => {
    const health = new Health();
    health.add('nats', () => {
      throw new Error('hunter2');
    });
    server = await serveHealth('127.0.0.1', 0, () => health.ready());
    expect(await ask('/live')).toEqual({ status: 200, body: { live: true } });
    expect(await ask('/ready')).toEqual({ status: 503, body: { ready: false, checks: { nats: false, accepting: true } } });
    expect((await ask('/__proto__')).status).toBe(404);
    expect((await ask('/')).status).toBe(404);
  });
});
