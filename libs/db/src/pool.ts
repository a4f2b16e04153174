import pg from 'pg';

/**
 * A pool for the hot paths and for what Prisma cannot do. `onError` hears of idle connections that broke: without a listener
 * the process would end when Postgres goes away (57P01).
 */
export function pgPool(
  connectionString: string,
  options: { max: number; onError: (error: Error) => void; types?: pg.CustomTypesConfig },
): pg.Pool {
  const pool = new pg.Pool({
    connectionString,
    max: options.max,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
  });
  pool.on('error', options.onError);
  return pool;
}
