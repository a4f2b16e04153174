import { BaseConfig, SeamSwitch } from '@isthmus/chassis';
import { z } from 'zod';

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim().toLowerCase())
    .filter(Boolean),
);
const milliseconds = z.coerce.number().int().min(10).max(60_000);

/** The gateway keeps nothing: it has no database. */
export const Config = BaseConfig.extend({
  SERVICE_NAME: z.literal('gateway').default('gateway'),
  PORT: z.coerce.number().int().min(0).max(65_535).default(8_080),
  HOST: z.string().min(1).default('127.0.0.1'),
  /** Where clients reach this host. Links are built from it and never from a request's Host header. */
  PUBLIC_URL: z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, '')),
  /** Hosts (`name` or `name:port`) the MCP mount may be asked as, besides local ones and PUBLIC_URL's. */
  ALLOWED_HOSTS: list.default([]),
  /** Web origins whose pages may speak to the MCP mount, besides local ones and PUBLIC_URL's. */
  ALLOWED_ORIGINS: list.default([]),
  /** How often the heads of watched runs are asked for: what a lost bell costs. */
  WATCH_POLL_MS: milliseconds.default(1_000),
  /** Open event streams and requests that start runs, at a time. Beyond it nothing new starts. */
  MAX_INFLIGHT: z.coerce.number().int().min(1).max(1_000_000).default(1_000),
  /** Ids of the workflows that a conformance start has seeded: discovery names them. */
  FIXTURES: list.default([]),
  OPENWOP_TEST_SEAM_ENABLED: SeamSwitch,
  /** How often services are asked again what they do. */
  DISCOVERY_REFRESH_MS: milliseconds.default(10_000),
});
export type Config = z.infer<typeof Config>;
