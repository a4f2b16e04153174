// The schema engine of Prisma's migrations, as WebAssembly. Heavy: loaded only when there is something to migrate.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory, ColumnTypeEnum } from '@prisma/driver-adapter-utils';
import * as engineModule from '@prisma/schema-engine-wasm/schema_engine_bg';

/** Runs `work` with an engine on the database at `url`; `files` are the schema files. */
export async function withEngine(url, files, work) {
  const { SchemaEngine } = loadEngine();
  const factory = new CatalogPg({ connectionString: url });
  const datamodels = files.map(({ path: file, content }) => [file, content]);
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
  const unrefed =
    (setTimer) =>
    (...args) => {
      const timer = setTimer(...args);
      timer?.unref?.();
      return timer;
    };
  const imports = Object.fromEntries(
    Object.entries(engineModule).map(([name, value]) => [name, name.startsWith('__wbg_setTimeout_') ? unrefed(value) : value]),
  );
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
