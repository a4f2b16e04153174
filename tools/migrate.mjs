// `prisma migrate` needs a binary that is downloaded at first use. The same engine is published as WebAssembly, so migrations
// run offline: deploy, create NAME, drift, status. Folders and the _prisma_migrations table are Prisma's own; the real CLI
// works on the same database.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory, ColumnTypeEnum } from '@prisma/driver-adapter-utils';
import * as engineModule from '@prisma/schema-engine-wasm/schema_engine_bg';
import pg from 'pg';
import { root } from './paths.mjs';
import { ensureRoles } from './roles.mjs';

const prismaDir = process.env.PRISMA_DIR ?? path.join(root, 'prisma');
const migrationsDir = path.join(prismaDir, 'migrations');
const lockFile = path.join(migrationsDir, 'migration_lock.toml');
const filters = { externalTables: [], externalEnums: [] };

/** Brings the database up to date and lets the service roles log in; answers the names of the migrations it applied. */
export async function deploy(url) {
  const applied = (await isCurrent(url)) ? [] : await withEngine(url, async (engine) => (await engine.applyMigrations({ migrationsList: migrationsList(), filters })).appliedMigrationNames);
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
    const { rows } = await client.query('select migration_name, checksum from _prisma_migrations where finished_at is not null and rolled_back_at is null');
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
  const { SchemaEngine } = loadEngine();
  const factory = new CatalogPg({ connectionString: url });
  const datamodels = schemaFiles().map(({ path: file, content }) => [file, content]);
  const engine = await SchemaEngine.new({ datamodels }, () => {}, bindMigrationAwareSqlAdapterFactory(factory));
  try {
    return await work(engine);
  } finally {
    engine.free();
    await factory.disposeAll();
  }
}

let isLoaded = false;
function loadEngine() {
  if (isLoaded) return engineModule;
  globalThis.PRISMA_WASM_PANIC_REGISTRY = { set_message: (message) => console.error('schema engine panicked:', message) };
  const folder = path.dirname(createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg'));
  const wasm = new WebAssembly.Module(readFileSync(path.join(folder, 'schema_engine_bg.wasm')));
  // The engine arms a 10 s lock timer and never clears it: without unref every caller would hang for 10 s.
  const unrefed = (setTimer) => (...args) => {
    const timer = setTimer(...args);
    timer?.unref?.();
    return timer;
  };
  const imports = Object.fromEntries(Object.entries(engineModule).map(([name, value]) => [name, name.startsWith('__wbg_setTimeout_') ? unrefed(value) : value]));
  const instance = new WebAssembly.Instance(wasm, { './schema_engine_bg.js': imports });
  engineModule.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start();
  isLoaded = true;
  return engineModule;
}

/** Prisma's adapter with the three things the schema engine needs and the client does not. */
class CatalogPg extends PrismaPg {
  #opened = [];

  async connect() {
    const adapter = await super.connect();
    this.#opened.push(adapter);
    // The adapter's own executeScript splits at every ';' and so breaks functions and DO blocks.
    adapter.executeScript = async (sql) => {
      await adapter.underlyingDriver().query(sql);
    };
    // The adapter refuses "char" (OID 18), which the catalog queries return: read it as text, report it as Character.
    let charColumns = [];
    const performIO = adapter.performIO.bind(adapter);
    const queryRaw = adapter.queryRaw.bind(adapter);
    adapter.performIO = async (...args) => {
      const result = await performIO(...args);
      charColumns = [];
      for (const [index, field] of (result.fields ?? []).entries()) {
        if (field.dataTypeID !== 18) continue;
        charColumns.push(index);
        field.dataTypeID = 25;
      }
      return result;
    };
    adapter.queryRaw = async (...args) => {
      const result = await queryRaw(...args);
      for (const index of charColumns) result.columnTypes[index] = ColumnTypeEnum.Character;
      return result;
    };
    return adapter;
  }

  /** Else the pool's idle connections keep the process alive for 10 s. */
  disposeAll() {
    return Promise.all(this.#opened.map((adapter) => adapter.dispose()));
  }
}

/** `create` and `drift` need a database that holds the migrations and nothing else: without DATABASE_URL a throw-away one is started. */
async function main([command = 'deploy', argument]) {
  const commands = { deploy, create, drift, status };
  if (!Object.hasOwn(commands, command)) throw new Error(`unknown command ${command}: use one of ${Object.keys(commands).join(', ')}`);
  if (process.env.DATABASE_URL) return console.log(command, await commands[command](process.env.DATABASE_URL, argument));
  const { startPostgres } = await import('./stack/postgres.mjs');
  const postgres = await startPostgres({ isDurable: false });
  try {
    if (command === 'drift' || command === 'status') await deploy(postgres.url);
    console.log(command, await commands[command](postgres.url, argument));
  } finally {
    await postgres.stop();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(process.argv.slice(2)).catch((error) => {
    console.error(error);
    process.exitCode = 1;
  });
}
