/** How this process drives runs; from the configuration. */
export type DriverSettings = {
  /** Name of this process in leases. */
  readonly instance: string;
  readonly leaseMs: number;
  readonly sweepMs: number;
  readonly maxNodeExecutions: number;
  readonly maxRunDurationMs: number;
};
export const DRIVER_SETTINGS = Symbol('driver settings');

/** A pure pass yields after this many nodes or milliseconds, so that cancel, caps and other tenants get their turn. */
export const PASS_NODES = 100;
export const PASS_MS = 20;
/** A lease is kept through a sleep that is shorter than this; a longer one is left to the sweep. */
export const NAP_MS = 1_500;
/** A run that was taken over this often without a new event is ended. */
export const MAX_TAKEOVERS = 5;
/** Outputs above this stand in the value store. */
export const INLINE_BYTES = 16 * 1024;
