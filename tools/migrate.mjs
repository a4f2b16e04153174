// `prisma migrate` needs a binary that is downloaded at first use. The same engine is published as WebAssembly, so migrations
// run offline: deploy, create NAME, drift, status. Folders and the _prisma_migrations table are Prisma's own; the real CLI
// works on the same database.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { root } from './paths.mjs';
import { ensureRoles } from './roles.mjs';

const prismaDir = process.env.PRISMA_DIR ?? path.join(root, 'prisma');
const migrationsDir = path.join(prismaDir, 'migrations');
const lockFile = path.join(migrationsDir, 'migration_lock.toml');
const filters = { externalTables: [], externalEnums: [] };

/** Brings the database up to date and lets the service roles log in; answers the names of the migrations it applied. */
export async function deploy(url) {
  const applied = (await isCurrent(url))
    ? []
    : await withEngine(
        url,
        async (engine) => (await engine.applyMigrations({ migrationsList: migrationsList(), filters })).appliedMigrationNames,
      );
  await ensureRoles(url);
  return applied;
}

/** Writes the SQL that leads from the migrations so far to schema.prisma as a new migration. `url` must be an empty database. */
export async function create(url, name) {
  if (!name) throw new Error('usage: npm run migrate -- create NAME');
  await deploy(url);
  const difference = await drift(url);
  if (difference.exitCode === 0) return 'nothing to do';
  const folder = `${new Date().toISOString().replace(/\D/g, '').slice(0, 14)}_${name}`;
  mkdirSync(path.join(migrationsDir, folder), { recursive: true });
  writeFileSync(path.join(migrationsDir, folder, 'migration.sql'), difference.stdout);
  writeFileSync(lockFile, '# managed by tools/migrate.mjs; keep in version control\nprovider = "postgresql"\n');
  return folder;
}

/** Live database → schema.prisma, as SQL. Policies, roles and functions are invisible to it. */
export const drift = (url) =>
  withEngine(url, (engine) => {
    const schema = { files: schemaFiles() };
    return engine.diff({
      from: { tag: 'schemaDatasource', ...schema, configDir: prismaDir },
      to: { tag: 'schemaDatamodel', ...schema },
      script: true,
      exitCode: true,
      filters,
    });
  });

export const status = (url) =>
  withEngine(url, (engine) => engine.diagnoseMigrationHistory({ migrationsList: migrationsList(), optInToShadowDatabase: false, filters }));

const schemaFiles = () =>
  readdirSync(prismaDir)
    .filter((name) => name.endsWith('.prisma'))
    .map((name) => ({ path: path.join(prismaDir, name), content: readFileSync(path.join(prismaDir, name), 'utf8') }));

const migrations = () =>
  existsSync(migrationsDir)
    ? readdirSync(migrationsDir, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => ({ name, sql: readFileSync(path.join(migrationsDir, name, 'migration.sql'), 'utf8') }))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
    : [];

const migrationsList = () => ({
  baseDir: migrationsDir,
  lockfile: { path: 'migration_lock.toml', content: existsSync(lockFile) ? readFileSync(lockFile, 'utf8') : null },
  shadowDbInitScript: '',
  migrationDirectories: migrations().map(({ name, sql }) => ({
    path: name,
    migrationFile: { path: 'migration.sql', content: { tag: 'ok', value: sql } },
  })),
});

/** The common case, answered by one query: everything is applied, as it stands on disk. */
async function isCurrent(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(
      'select migration_name, checksum from _prisma_migrations where finished_at is not null and rolled_back_at is null',
    );
    const applied = new Map(rows.map((row) => [row.migration_name, row.checksum]));
    return migrations().every(({ name, sql }) => applied.get(name) === createHash('sha256').update(sql).digest('hex'));
  } catch (error) {
    if (error.code === '42P01') return false; // no table yet
    throw error;
  } finally {
    await client.end();
  }
}

async function withEngine(url, work) {
  const engine = await import('./schema-engine.mjs');
  return engine.withEngine(url, schemaFiles(), work);
}

/** `create` and `drift` need a database that holds the migrations and nothing else: without DATABASE_URL a throw-away one is started. */
async function main([command = 'deploy', argument]) {
  const commands = { deploy, create, drift, status };
  if (!Object.hasOwn(commands, command)) throw new Error(`unknown command ${command}: use one of ${Object.keys(commands).join(', ')}`);
  if (process.env.DATABASE_URL) return console.log(command, await commands[command](process.env.DATABASE_URL, argument));
  const { startPostgres } = await import('./stack/postgres.mjs');
  const { Ledger } = await import('./stack/ledger.mjs');
  const ledger = new Ledger('migrate');
  const postgres = await startPostgres({ watch: { ledger } });
  try {
    if (command === 'drift' || command === 'status') await deploy(postgres.url);
    console.log(command, await commands[command](postgres.url, argument));
  } finally {
    await postgres.stop();
    ledger.close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(process.argv.slice(2)).catch((error) => {
    console.error(error);
    process.exitCode = 1;
  });
}
