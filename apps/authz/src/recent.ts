import type { Clock } from '@isthmus/chassis';
import { LRUCache } from 'lru-cache';

/** A bounded memory of the last `ms` milliseconds, by a clock that a test can move. */
export const recent = <Value extends NonNullable<unknown>>(clock: Clock, ms: number): LRUCache<string, Value> =>
  // To the cache a time of 0 means none.
  new LRUCache({ max: 10_000, ttl: ms, ttlResolution: 0, perf: { now: () => clock.monotonic() + 1 } });
