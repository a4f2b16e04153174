import { spawn } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import path from 'node:path';
import { readJson } from '../files.mjs';
import { inDev, root } from '../paths.mjs';

/** How long jest may take to end after its last test: longer means that a test left something open. */
const FAREWELL = 20_000;

/** Unit and port tests side by side first, then the e2e tests one after the other: each of those runs a whole stack. */
export async function runJest(args, { env, signal }) {
  if (args.some((arg) => arg.startsWith('--selectProjects'))) return [await run(args, { env, signal })];
  const own = await run([...args, '--ignoreProjects', 'e2e'], { env, signal });
  const e2e = await run([...args, '--selectProjects', 'e2e', '--maxWorkers=1'], { env, signal });
  return [own, e2e];
}

async function run(args, { env, signal }) {
  const report = inDev(`jest-${process.pid}.json`);
  rmSync(report, { force: true });
  const node = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  const jest = path.join(root, 'node_modules/jest/bin/jest.js');
  const child = spawn(process.execPath, [...node, jest, '--passWithNoTests', '--json', `--outputFile=${report}`, ...args], {
    cwd: root,
    // The report goes to the file; what people read goes to stderr.
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...env, NODE_ENV: 'test' },
    signal,
  });
  let isStuck = false;
  let farewell;
  const watch = setInterval(() => {
    if (farewell || !existsSync(report)) return;
    farewell = setTimeout(() => {
      isStuck = true;
      child.kill('SIGKILL');
    }, FAREWELL);
  }, 500);
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  clearInterval(watch);
  clearTimeout(farewell);
  signal.throwIfAborted();

  const result = readJson(report);
  rmSync(report, { force: true });
  if (!result) return { passed: 0, failed: 1 };
  if (isStuck) console.error(`jest did not end within ${FAREWELL / 1000} s after its last test: a test left something open.`);
  const failed = result.numFailedTests + result.numRuntimeErrorTestSuites + (isStuck ? 1 : 0);
  return { passed: result.numPassedTests, failed: failed === 0 && code !== 0 ? 1 : failed };
}
