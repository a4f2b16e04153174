import { describe, expect, it } from '@jest/globals';
import { afterFailure, type Endpoint, PROBE_MS, retryAt } from './back-off.js';

const RETRY = { attempts: 5, firstMs: 1_000, factor: 4, mostMs: 20_000 };
const BREAKER = { failures: 4, firstMs: 2_000, mostMs: 3_600_000 };
const FINE: Endpoint = { failures: 0, openUntil: null };

describe('a delivery that fails', () => {
  it('waits longer each time, up to a bound, and is dead after its last attempt', () => {
    expect([1, 2, 3, 4, 5, 6].map((attempt) => retryAt(RETRY, attempt, 100))).toEqual([1_100, 4_100, 16_100, 20_100, undefined, undefined]);
  });
});

describe('an endpoint that fails', () => {
  const after = (count: number, from: Endpoint = FINE) =>
    Array.from({ length: count }).reduce<Endpoint>((endpoint) => afterFailure(BREAKER, endpoint, 1_000), from);

  it('is left alone after the fourth failure in a row', () => {
    expect(after(3)).toEqual({ failures: 3, openUntil: null });
    expect(after(4)).toEqual({ failures: 4, openUntil: 1_000 + 2_000 + PROBE_MS });
  });

  it('is not left alone longer for what was on its way already', () => {
    expect(after(9)).toEqual(after(4));
  });

  it('is left alone twice as long each time a look finds it still failing, up to an hour', () => {
    const pauses: number[] = [];
    let endpoint = after(4);
    for (let look = 0; look < 14; look += 1) {
      const now = (endpoint.openUntil as number) - PROBE_MS;
      endpoint = afterFailure(BREAKER, endpoint, now);
      pauses.push((endpoint.openUntil as number) - PROBE_MS - now);
    }
    expect(pauses.slice(0, 3)).toEqual([4_000, 8_000, 16_000]);
    expect(pauses.at(-1)).toBe(3_600_000);
  });
});
