/** What is known of an origin: when it failed lately, and since when it is left alone. */
export type BreakerState = {
  readonly failedAt: readonly number[];
  readonly openedAt?: number;
  /** Somebody was let through to see whether it is back. */
  readonly isProbing?: boolean;
};

export const BREAKER = { failures: 5, windowMs: 10_000, pauseMs: 1_000 } as const;
export const CLOSED: BreakerState = { failedAt: [] };

/** May a request go to the origin now? While it is left alone one request per pause goes through to look. */
export function pass(state: BreakerState, now: number): { readonly passes: boolean; readonly state: BreakerState } {
  if (state.openedAt === undefined) return { passes: true, state };
  if (now - state.openedAt < BREAKER.pauseMs) return { passes: false, state };
  // The pause begins anew with each look, so that one that never comes back does not hold the door for ever.
  return { passes: true, state: { ...state, openedAt: now, isProbing: true } };
}

/** Only failures to get an answer count: a tool's or a JSON-RPC error is an answer. (rulings, "MCP client") */
export function failed(state: BreakerState, now: number): BreakerState {
  const failedAt = [...state.failedAt.filter((at) => now - at < BREAKER.windowMs), now].slice(-BREAKER.failures);
  const isOpen = state.isProbing === true || failedAt.length >= BREAKER.failures;
  return isOpen ? { failedAt, openedAt: now } : { failedAt, ...(state.openedAt !== undefined && { openedAt: state.openedAt }) };
}
