// `prisma generate`, without a download: the command only checks that the named schema engine exists and is executable, and
// never runs it, so Node itself stands in for it.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesBelow, fingerprint, readJson } from './files.mjs';
import { root } from './paths.mjs';
import { complete } from './run.mjs';

const prismaDir = path.join(root, 'prisma');
const output = path.join(root, 'libs/db/src/generated');

/** Generates the Prisma client when the schema has changed; answers whether it did. */
export async function generate({ signal } = {}) {
  if (!existsSync(path.join(prismaDir, 'schema.prisma'))) return false;
  const version = readJson(path.join(root, 'node_modules/prisma/package.json'))?.version;
  const schemas = filesBelow(prismaDir).filter((file) => file.endsWith('.prisma'));
  const wanted = fingerprint(prismaDir, schemas, version);
  const stamp = path.join(output, '.generated');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return false;

  const cli = createRequire(import.meta.url).resolve('prisma/build/index.js');
  await complete(
    spawn(process.execPath, [cli, 'generate', '--no-hints'], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      signal,
      env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1', PRISMA_HIDE_UPDATE_MESSAGE: '1' },
    }),
    'prisma generate',
  );
  writeFileSync(stamp, wanted);
  return true;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log((await generate()) ? 'generated' : 'unchanged');
