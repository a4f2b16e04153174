import { once } from 'node:events';
import { createServer } from 'node:net';
import { Caller, RunId } from '@isthmus/protocol';
import { describe, expect, it } from '@jest/globals';
import { callerOf } from './caller.js';
import { FakeClock } from './clock.js';
import { FakeIds } from './ids.js';
import { watchLeaks } from './no-leaks.js';
import { until } from './wait.js';

describe('fakes', () => {
  it('lets time pass when the test says so, and sets the clock without anything elapsing', () => {
    const clock = new FakeClock(1_000);
    clock.advance(500);
    clock.set(9_000);
    expect([clock.now(), clock.monotonic(), clock.date().getTime()]).toEqual([9_000, 500, 9_000]);
  });

  it('makes ids that can be told in advance and are valid', () => {
    const ids = new FakeIds();
    expect([ids.run(), ids.run()]).toEqual(['00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000002']);
    expect(RunId.safeParse(ids.run()).success).toBe(true);
    expect(ids.opaque()).not.toBe(ids.opaque());
  });

  it('makes callers that authz could have made', () => {
    expect(Caller.parse(callerOf({ tenant: 't', scopes: ['runs:read'] }))).toMatchObject({
      tenant: 't',
      workspace: 't-workspace',
      scopes: ['runs:read'],
    });
  });
});

describe('waiting', () => {
  it('ends as soon as the condition holds and answers what it saw', async () => {
    let asked = 0;
    expect(await until(() => (++asked === 3 ? 'seen' : undefined), { everyMs: 1 })).toBe('seen');
  });

  it('fails with what it last saw', async () => {
    await expect(until(() => false, { timeoutMs: 5, everyMs: 1, what: 'The run' })).rejects.toThrow(
      'The run did not come true within 5 ms; last seen: false',
    );
    await expect(until(() => Promise.reject(new Error('away')), { timeoutMs: 5, everyMs: 1 })).rejects.toThrow('away');
  });

  it('names what a test left open', async () => {
    const leaks = watchLeaks();
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    await expect(leaks.settled(20)).rejects.toThrow('still open: TCPServerWrap +1');
    await new Promise((resolve) => server.close(resolve));
    await leaks.settled();
  });
});
