import { readConfig } from '@isthmus/chassis';
import { z } from 'zod';

/** What `npm test` tells integration tests. */
export const testEnvironment = () =>
  readConfig(
    z.object({
      /** Administrator's URL of a migrated database. */
      TEST_DATABASE_URL: z.string().min(1, 'run the tests through npm test'),
      TEST_NATS_URL: z.string().min(1, 'run the tests through npm test'),
      JEST_WORKER_ID: z.string().regex(/^\d+$/).default('1'),
    }),
  );
