import { BaseConfig } from '@isthmus/chassis';
import { z } from 'zod';

export const Config = BaseConfig.extend({
  DATABASE_URL: z.string().min(1),
  /** Pools this deployment serves, separated by commas: a heavy mount gets a pool, and replicas, of its own. */
  MCP_SERVER_POOLS: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}(,[A-Za-z0-9_-]{1,64})*$/, 'must be names of A-Z a-z 0-9 _ -, separated by commas')
    .default('default')
    .transform((names) => names.split(',')),
  /** Requests of one pool that this replica works on at a time; more are refused with 503. */
  MAX_IN_FLIGHT: z.coerce.number().int().min(1).default(1_000),
  /** How long a call waits for its run before the client is told to ask again. */
  SLOW_RUN_MS: z.coerce.number().int().min(0).max(600_000).default(20_000),
});
export type Config = z.infer<typeof Config>;
