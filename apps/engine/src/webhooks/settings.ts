import { ANYWHERE, type Cidr } from '@isthmus/egress';
import type { Config } from '../config.js';

/** How this process tells of events; from the configuration. */
export type WebhookSettings = {
  /** Networks that may be told although they are not public. */
  readonly allow: readonly Cidr[];
  /** Plain http will do. */
  readonly plainHttp: boolean;
  /** A target is asked once, before it is taken. */
  readonly verify: boolean;
  /** How often due deliveries are looked for; the bell makes it faster. */
  readonly sweepMs: number;
  readonly retry: Retry;
  readonly breaker: BreakerRule;
};
export const WEBHOOK_SETTINGS = Symbol('webhook settings');

/** The nth failure waits `firstMs` times `factor` to the power of n - 1; after `attempts` of them the delivery is dead. */
export type Retry = { readonly attempts: number; readonly firstMs: number; readonly factor: number; readonly mostMs: number };
/** After so many failures in a row an endpoint is left alone, longer each time it is looked after in vain. */
export type BreakerRule = { readonly failures: number; readonly firstMs: number; readonly mostMs: number };

/** 1 s, 4 s, 16 s … 12 h: about two days. */
const RETRY: Retry = { attempts: 12, firstMs: 1_000, factor: 4, mostMs: 12 * 3_600_000 };
/** The hour of the specification is where it ends: who restarts its receiver does not wait for one. (families §5) */
const BREAKER: BreakerRule = { failures: 4, firstMs: 2_000, mostMs: 3_600_000 };

/** In `--conformance` mode targets may be private and plain, and nobody is asked first. (rulings, "Webhooks") */
export const webhookSettings = (config: Config): WebhookSettings => {
  const isTest = config.CONFORMANCE === 'true';
  return {
    allow: isTest ? ANYWHERE : [],
    plainHttp: isTest,
    verify: !isTest,
    sweepMs: config.SWEEP_MS,
    retry: RETRY,
    breaker: BREAKER,
  };
};
