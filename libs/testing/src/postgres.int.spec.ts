import { afterAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { type TestDatabase, testDatabase } from './postgres.js';

describe('a test database', () => {
  const databases: TestDatabase[] = [];
  afterAll(async () => {
    for (const database of databases) await database.drop();
  });
  const made = async () => {
    const database = await testDatabase();
    databases.push(database);
    return database;
  };
  const query = async (connectionString: string, sql: string) => {
    const client = new pg.Client({ connectionString });
    await client.connect();
    try {
      return (await client.query(sql)).rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  };

  it('is migrated, belongs to one test file, and lets each service log in as its own role', async () => {
    const [one, two] = await Promise.all([made(), made()]);
    expect(await query(one.serviceUrl('engine'), 'select current_user as who')).toEqual([{ who: 'isthmus_engine' }]);
    expect(await query(one.serviceUrl('mcp-client'), 'select current_user as who')).toEqual([{ who: 'isthmus_mcp_client' }]);
    await query(one.adminUrl, 'create table only_here ()');
    const tables = `select table_name from information_schema.tables where table_name in ('only_here', '_prisma_migrations')`;
    expect(await query(one.adminUrl, `${tables} order by 1`)).toHaveLength(2);
    expect(await query(two.adminUrl, tables)).toEqual([{ table_name: '_prisma_migrations' }]);
  });

  it('goes away even while somebody is connected', async () => {
    const database = await testDatabase();
    const client = new pg.Client({ connectionString: database.adminUrl });
    client.on('error', () => {});
    await client.connect();
    await database.drop();
    await expect(query(database.adminUrl, 'select 1')).rejects.toMatchObject({ code: '3D000' });
    await client.end().catch(() => {});
  });
});
