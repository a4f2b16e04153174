// The set-up both commands do themselves. Everything that comes from npm is imported after the install step.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { readJson } from './files.mjs';
import { root } from './paths.mjs';
import { complete } from './run.mjs';
import { step } from './say.mjs';

export async function setUp({ signal } = {}) {
  if (!isInstalled()) await step('packages installed from the lock file', async () => void (await install(signal)));
  const { generate } = await import('./generate.mjs');
  await step('database client generated', async () => ((await generate({ signal })) ? undefined : 'database client is up to date'));
  const { buildAll } = await import('./build.mjs');
  await step('services built', async () => {
    const built = await buildAll();
    return built.length ? `built ${built.join(', ')}` : 'build is up to date';
  });
}

/** npm writes what it installed into node_modules at the very end of an install: compare that with the lock. */
function isInstalled() {
  const wanted = readJson(path.join(root, 'package-lock.json'))?.packages;
  const present = readJson(path.join(root, 'node_modules/.package-lock.json'))?.packages;
  if (!wanted || !present) return false;
  return Object.entries(wanted).every(([name, { version, optional, link }]) => {
    if (!name.startsWith('node_modules/') || link) return true;
    return Object.hasOwn(present, name) ? present[name].version === version : optional === true;
  });
}

/** Exactly what the lock file says, development packages included, whatever NODE_ENV is. */
function install(signal) {
  const npm = process.env.npm_execpath;
  const [command, args] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []];
  const child = spawn(command, [...args, 'ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
  });
  return complete(child, 'npm ci');
}
