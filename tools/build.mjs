// Builds packages file by file with swc: src/**/*.ts becomes dist/**/*.js, unbundled, as Node runs it.
// `node ../../tools/build.mjs` inside a package builds that one (this is what Nx calls); `buildAll` does all in one process.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesBelow, fingerprint } from './files.mjs';
import { root } from './paths.mjs';

const swcrc = path.join(root, '.swcrc');
const recipe = [readFileSync(swcrc, 'utf8'), readFileSync(fileURLToPath(import.meta.url), 'utf8')];

const isTest = (file) => /\.(spec|suite|d)\.ts$/.test(file);

/** Every app and lib with sources. */
export const packageFolders = () =>
  ['libs', 'apps'].flatMap((kind) =>
    readdirSync(path.join(root, kind))
      .map((name) => path.join(root, kind, name))
      .filter((folder) => existsSync(path.join(folder, 'package.json')) && existsSync(path.join(folder, 'src'))),
  );

/** Answers whether there was anything to do: an unchanged package is left alone. */
export async function buildPackage(folder) {
  const src = path.join(folder, 'src');
  const dist = path.join(folder, 'dist');
  const files = filesBelow(src).filter((file) => !isTest(file));
  const wanted = fingerprint(src, files, ...recipe);
  const stamp = path.join(dist, '.built');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return false;

  // Built beside and moved into place, so that a running service never sees half a build.
  const draft = `${dist}.${process.pid}`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true });
  try {
    await Promise.all(files.map((file) => buildFile(src, draft, file)));
    await writeFile(path.join(draft, '.built'), wanted);
    await rm(dist, { recursive: true, force: true });
    await rename(draft, dist);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return true;
}

async function buildFile(src, dist, file) {
  const from = path.join(src, file);
  const to = path.join(dist, file.replace(/\.ts$/, '.js'));
  await mkdir(path.dirname(to), { recursive: true });
  if (!file.endsWith('.ts')) return copyFile(from, to);
  const { transformFile } = await import('@swc/core');
  const { code, map } = await transformFile(from, { configFile: swcrc, swcrc: false, sourceMaps: true });
  await writeFile(to, `${code}\n//# sourceMappingURL=${path.basename(to)}.map\n`);
  await writeFile(`${to}.map`, map);
}

export async function buildAll() {
  const done = [];
  for (const folder of packageFolders()) if (await buildPackage(folder)) done.push(path.basename(folder));
  return done;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = process.cwd();
  console.log(`${path.basename(folder)}: ${(await buildPackage(folder)) ? 'built' : 'unchanged'}`);
}
