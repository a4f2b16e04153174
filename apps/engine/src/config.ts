import { BaseConfig, SeamSwitch } from '@isthmus/chassis';
import { LIMITS } from '@isthmus/protocol';
import { z } from 'zod';

const milliseconds = (min: number, max: number, usual: number) => z.coerce.number().int().min(min).max(max).default(usual);

export const Config = BaseConfig.extend({
  DATABASE_URL: z.string().min(1),
  /** Connections to Postgres of this process. */
  DATABASE_POOL: z.coerce.number().int().min(2).max(100).default(10),
  /** How long a process that died keeps its runs. Renewed every third of it. */
  LEASE_MS: milliseconds(1_000, 120_000, 6_000),
  /** How often due runs are looked for. */
  SWEEP_MS: milliseconds(50, 60_000, 250),
  MAX_NODE_EXECUTIONS: z.coerce.number().int().min(1).max(LIMITS.maxNodeExecutions).default(LIMITS.maxNodeExecutions),
  /** The whole host is a test: webhooks may go to private addresses. */
  CONFORMANCE: z.enum(['true', 'false']).default('false'),
  OPENWOP_TEST_SEAM_ENABLED: SeamSwitch,
});
export type Config = z.infer<typeof Config>;
