export { asTenant } from './as-tenant.js';
export { isUniqueViolation } from './conflict.js';
export { Db, DbModule } from './db.module.js';
export { Prisma } from './generated/client.js';
export { pgPool } from './pool.js';
export { inTransaction, Postgres, PostgresModule, type Tx } from './postgres.js';
