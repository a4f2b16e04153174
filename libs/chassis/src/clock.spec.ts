import { describe, expect, it } from '@jest/globals';
import { SystemClock } from './clock.js';

const MINUTES = 60_000;

describe('the clock', () => {
  it("goes by the host's clock until it has been measured", () => {
    expect(Math.abs(new SystemClock().now() - Date.now())).toBeLessThan(100);
  });

  it("goes by the database's clock once it has been measured", async () => {
    const clock = new SystemClock();
    const measured = await clock.measureOffset(async () => Date.now() + 7 * MINUTES);
    expect(Math.abs(measured.offsetMs - 7 * MINUTES)).toBeLessThan(100);
    expect(Math.abs(clock.now() - Date.now() - 7 * MINUTES)).toBeLessThan(100);
    expect(clock.date().getTime() - Date.now()).toBeGreaterThan(6 * MINUTES);
  });

  it('believes the fastest of several answers', async () => {
    const clock = new SystemClock();
    const answers = [
      async () => {
        await new Promise((resolve) => setTimeout(resolve, 40));
        return Date.now() + 3 * MINUTES;
      },
      async () => Date.now() + 5 * MINUTES,
      async () => {
        await new Promise((resolve) => setTimeout(resolve, 40));
        return Date.now() + 4 * MINUTES;
      },
    ];
    const { offsetMs, errorMs } = await clock.measureOffset(async () => (answers.shift() ?? (async () => 0))());
    expect(Math.abs(offsetMs - 5 * MINUTES)).toBeLessThan(20);
    expect(errorMs).toBeLessThan(20);
  });

  it('ignores a difference that is within the error of the measurement', async () => {
    const clock = new SystemClock();
    await clock.measureOffset(async () => Date.now() + 2 * MINUTES);
    const before = clock.now() - clock.monotonic();
    await clock.measureOffset(async () => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      const theirs = Date.now() + 2 * MINUTES + 5;
      await new Promise((resolve) => setTimeout(resolve, 30));
      return theirs;
    }, 1);
    expect(Math.abs(clock.now() - clock.monotonic() - before)).toBeLessThanOrEqual(1);
  });

  it('keeps what it has when the database does not answer', async () => {
    const clock = new SystemClock();
    await clock.measureOffset(async () => Date.now() + 2 * MINUTES);
    await expect(clock.measureOffset(() => Promise.reject(new Error('away')))).rejects.toThrow('away');
    await expect(clock.measureOffset(async () => Number.NaN)).rejects.toThrow('no number');
    expect(clock.now() - Date.now()).toBeGreaterThan(MINUTES);
  });
});
