import type { Db } from './db.module.js';
import type { Prisma } from './generated/client.js';

/**
 * Runs `work` in one transaction in which row-level security shows `tenant` and nothing else. A forgotten filter returns
 * nothing instead of everything. The setting ends with the transaction, so the next user of the connection starts blind.
 */
export function asTenant<T>(db: Db, tenant: string, work: (tx: Prisma.TransactionClient) => Promise<T>): Promise<T> {
  return db.$transaction(async (tx) => {
    await tx.$executeRaw`select set_config('app.tenant', ${tenant}, true)`;
    return work(tx);
  });
}
