import type { BreakerRule, Retry } from './settings.js';

/** When a delivery goes again after its nth attempt failed; undefined: never, it is dead. */
export const retryAt = ({ attempts, firstMs, factor, mostMs }: Retry, attempt: number, now: number): number | undefined =>
  attempt >= attempts ? undefined : now + Math.min(mostMs, firstMs * factor ** (attempt - 1));

/** How an endpoint did lately: failures in a row, and until when it is left alone. */
export type Endpoint = { readonly failures: number; readonly openUntil: number | null };

/** One delivery goes this long before all others, to see whether the endpoint is back: longer than a request lasts. */
export const PROBE_MS = 10_000;

/**
 * The endpoint after a failure. Whatever was on its way when it was given up says nothing new: only the probe, and what comes
 * after it, counts.
 */
export function afterFailure(rule: BreakerRule, endpoint: Endpoint, now: number): Endpoint {
  if (endpoint.openUntil !== null && now < endpoint.openUntil - PROBE_MS) return endpoint;
  const failures = endpoint.failures + 1;
  if (failures < rule.failures) return { failures, openUntil: null };
  const pause = Math.min(rule.mostMs, rule.firstMs * 2 ** (failures - rule.failures));
  return { failures, openUntil: now + pause + PROBE_MS };
}
