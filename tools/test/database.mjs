import pg from 'pg';
import { requirePostgres } from '../stack/postgres.mjs';

/** A database of our own on the user's server, so that tests never touch the one DATABASE_URL names. */
export async function borrowDatabase(adminUrl) {
  await requirePostgres(adminUrl);
  const name = `isthmus_test_${process.pid}`;
  const command = async (sql) => {
    const client = new pg.Client({ connectionString: adminUrl });
    await client.connect();
    await client.query(sql).finally(() => client.end());
  };
  await command(`create database ${name}`);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return { url: url.href, stop: () => command(`drop database if exists ${name} with (force)`) };
}
