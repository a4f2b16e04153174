// Types, import rules and format count as tests.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { root } from '../paths.mjs';
import { complete } from '../run.mjs';
import { step } from '../say.mjs';

const CHECKS = [
  { name: 'types', command: 'typescript/bin/tsc', args: ['-p', 'tsconfig.json', '--pretty'] },
  // eslint's boundary rule reads the project graph that Nx last wrote.
  { name: 'project graph', command: 'nx/dist/bin/nx.js', args: ['show', 'projects'] },
  { name: 'eslint', command: 'eslint/bin/eslint.js', args: ['.'] },
  { name: 'biome', command: '@biomejs/biome/bin/biome', args: ['lint', '--error-on-warnings'] },
];

export async function runChecks(signal) {
  const results = [];
  for (const check of CHECKS) results.push(await runCheck(check, signal));
  return results;
}

async function runCheck({ name, command, args }, signal) {
  const script = path.join(root, 'node_modules', command);
  try {
    await step(
      name,
      async () =>
        void (await complete(spawn(process.execPath, [script, ...args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], signal }), name)),
    );
    return { passed: 1, failed: 0 };
  } catch (error) {
    if (signal.aborted) throw error;
    console.error(error.message);
    return { passed: 0, failed: 1 };
  }
}
