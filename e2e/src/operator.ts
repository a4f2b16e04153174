import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import canonicalize from 'canonicalize';
import pg from 'pg';
import { serviceUrl } from '../../tools/roles.mjs';
import type { Stack } from './stack.js';

export const root = path.resolve(import.meta.dirname, '../..');

/** As the administrator of the database, who sees all tenants. */
export async function query<Row extends object>({ databaseUrl }: Stack, sql: string, values: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  client.on('error', () => undefined); // a test may kill the server between two lines
  await client.connect();
  try {
    return (await client.query<Row>(sql, values)).rows;
  } finally {
    await client.end();
  }
}

/** Tables that tell how often and how something was asked, not what there is. */
const BESIDE = ['authz.audit', 'authz.signing_keys'];

/** How many rows each table of the services has. */
export async function rowCounts(stack: Stack): Promise<Record<string, number>> {
  const tables = await query<{ name: string }>(
    stack,
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
     where table_schema in ('engine', 'authz', 'mcp_client', 'mcp_server') and table_type = 'BASE TABLE' order by 1`,
  );
  const counted = tables.map(({ name }) => name).filter((name) => !BESIDE.includes(name));
  const counts = await query<{ name: string; count: number }>(
    stack,
    counted.map((name) => `select '${name}' as name, count(*)::int as count from ${name}`).join(' union all '),
  );
  return Object.fromEntries(counts.map(({ name, count }) => [name, count]));
}

type Entry = {
  seq: number;
  tenant: string | null;
  at: string;
  type: string;
  facts: Record<string, unknown>;
  prev_hash: string | null;
  hash: string;
};

/** What the audit chain of a tenant (or, without one, of the host) holds. */
export const audited = (stack: Stack, tenant?: string): Promise<Entry[]> =>
  query<Entry>(
    stack,
    `select seq::int, tenant, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at, type, facts, prev_hash, hash
     from authz.audit where chain = $1 order by seq`,
    [tenant === undefined ? 'host' : `tenant:${tenant}`],
  );

/** Is every entry the one that was written, and in its place? Written out again here, so that it is checked by the specification. (RFC 8785, SHA-256) */
export const isUnbroken = (entries: readonly Entry[]): boolean =>
  entries.every(({ seq, tenant, at, type, facts, prev_hash: prevHash, hash }, index) => {
    const text = canonicalize({ seq, ...(tenant !== null && { tenant }), at, type, facts, prevHash }) ?? '';
    return seq === index && prevHash === (entries[index - 1]?.hash ?? null) && createHash('sha256').update(text).digest('hex') === hash;
  });

/** The operator's command line of authz, against the running host. */
export async function administer({ databaseUrl, natsUrl }: Stack, ...args: string[]): Promise<string> {
  const env = { PATH: process.env['PATH'], DATABASE_URL: serviceUrl(databaseUrl, 'authz'), NATS_URL: natsUrl };
  const { stdout } = await promisify(execFile)(process.execPath, [path.join(root, 'apps/authz/dist/admin.js'), ...args], { env });
  return stdout.trim();
}

/** The public part of a key. */
export const keyIdOf = (key: string): string => key.split('_')[1] ?? '';
