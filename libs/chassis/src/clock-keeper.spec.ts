import { FakeClock } from '@isthmus/testing';
import { describe, expect, it } from '@jest/globals';
import { SystemClock } from './clock.js';
import { ClockKeeper } from './clock-keeper.js';
import { Health } from './health.js';
import { createLogger } from './logger.js';

const silent = createLogger({ service: 'engine', instance: 'test', level: 'silent' });

describe('the clock keeper', () => {
  it('makes a service ready only when the offset is known', async () => {
    const health = new Health();
    const keeper = new ClockKeeper(new SystemClock(), health, silent);
    let isAway = true;
    const query = async () => {
      if (isAway) throw new Error('away');
      return Date.now();
    };
    await keeper.follow(query);
    expect(await health.ready()).toEqual({ ready: false, checks: { clock: false, accepting: true } });
    isAway = false;
    await keeper.follow(query);
    expect(await health.ready()).toMatchObject({ ready: true });
    keeper.onApplicationShutdown();
  });

  it('leaves the clock of a test alone', async () => {
    const health = new Health();
    await new ClockKeeper(new FakeClock(), health, silent).follow(() => Promise.reject(new Error('asked')));
    expect(await health.ready()).toEqual({ ready: true, checks: { accepting: true } });
  });
});
