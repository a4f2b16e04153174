import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import { serviceUrl } from '../../../tools/roles.mjs';
import { testEnvironment } from './environment.js';

export type DataOwner = 'engine' | 'authz' | 'mcp-client' | 'mcp-server';

export type TestDatabase = {
  /** The administrator's URL: sees everything, row-level security included. */
  readonly adminUrl: string;
  /** As the service itself logs in. */
  serviceUrl(service: DataOwner): string;
  drop(): Promise<void>;
};

/** A migrated database that belongs to one test file. */
export async function testDatabase(): Promise<TestDatabase> {
  const { TEST_DATABASE_URL } = testEnvironment();
  const name = `test_${randomBytes(8).toString('hex')}`;
  await asAdmin(TEST_DATABASE_URL, async (client) => {
    const template = await ensureTemplate(client, TEST_DATABASE_URL);
    await client.query(`create database ${client.escapeIdentifier(name)} template ${client.escapeIdentifier(template)}`);
  });
  const adminUrl = inDatabase(TEST_DATABASE_URL, name);
  return {
    adminUrl,
    serviceUrl: (service) => {
      const url = serviceUrl(adminUrl, service);
      if (!url) throw new Error(`${service} has no role in the database`);
      return url;
    },
    drop: () =>
      asAdmin(
        TEST_DATABASE_URL,
        async (client) => void (await client.query(`drop database if exists ${client.escapeIdentifier(name)} with (force)`)),
      ),
  };
}

const OBJECT_IN_USE = '55006';

/**
 * A copy of the migrated database that nobody can connect to: Postgres clones only what nobody uses, and test files run side by
 * side. Named after what was migrated, so that a later migration makes another.
 */
async function ensureTemplate(client: pg.Client, migratedUrl: string): Promise<string> {
  await client.query(`select pg_advisory_lock(hashtext('isthmus test template'))`);
  try {
    const template = `isthmus_template_${await migrationsDigest(migratedUrl)}`;
    const { rowCount } = await client.query('select from pg_database where datname = $1 and datistemplate', [template]);
    if (rowCount) return template;
    const quoted = client.escapeIdentifier(template);
    const source = client.escapeIdentifier(databaseOf(migratedUrl));
    // Left over from a run that was killed between the two statements below.
    await client.query(`drop database if exists ${quoted}`);
    await retryWhileInUse(() => client.query(`create database ${quoted} template ${source}`));
    await client.query(`alter database ${quoted} with is_template true allow_connections false`);
    return template;
  } finally {
    await client.query(`select pg_advisory_unlock(hashtext('isthmus test template'))`);
  }
}

/** Postgres itself waits five seconds for others to leave before it answers "in use". */
async function retryWhileInUse(work: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await work();
      return;
    } catch (error) {
      if (attempt === 3 || (error as { code?: string }).code !== OBJECT_IN_USE) throw error;
    }
  }
}

async function migrationsDigest(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ checksum: string }>('select checksum from _prisma_migrations order by migration_name');
    return createHash('sha256')
      .update(`${databaseOf(url)} ${rows.map((row) => row.checksum).join(' ')}`)
      .digest('hex')
      .slice(0, 16);
  } finally {
    await client.end();
  }
}

/** From `template1`, which always exists: a session inside of a database would keep it from being cloned. */
async function asAdmin<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: inDatabase(url, 'template1') });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const databaseOf = (url: string): string => decodeURIComponent(new URL(url).pathname.slice(1));

function inDatabase(url: string, database: string): string {
  const other = new URL(url);
  other.pathname = `/${database}`;
  return other.href;
}
