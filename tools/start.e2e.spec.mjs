// `npm start` as people run it, in a data folder of its own.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from './paths.mjs';
import { birth } from './stack/ledger.mjs';
import { freePort } from './stack/ports.mjs';

const folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-start-'));
const stackFile = path.join(folder, 'stack.json');
const stack = () => JSON.parse(readFileSync(stackFile, 'utf8'));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function start(...flags) {
  const { DATABASE_URL: _database, NATS_URL: _nats, npm_lifecycle_event: _npm, ...env } = process.env;
  const child = spawn(process.execPath, [path.join(root, 'tools/start.mjs'), ...flags], {
    cwd: root,
    env: { ...env, ISTHMUS_DEV_DIR: folder, PORT: String(await freePort()) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const run = { child, output: '' };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (run.output += chunk));
  run.ended = new Promise((resolve) => child.once('close', (code, signal) => resolve({ code, signal })));
  return run;
}

async function until(claim, what, run) {
  for (const end = Date.now() + 60_000; !claim(); await sleep(50)) {
    if (Date.now() > end || run.child.exitCode !== null) throw new Error(`${what} never happened:\n${run.output}`);
  }
}

const everyPid = ({ pids }) => Object.values(pids).flat();

describe('npm start', () => {
  it('does the main job in both directions and ends with 0, leaving no process', async () => {
    const run = await start('--once');
    await until(() => existsSync(stackFile), 'stack.json', run);
    const pids = everyPid(stack());
    expect(pids).toHaveLength(7);
    expect(await run.ended).toEqual({ code: 0, signal: null });
    expect(run.output).toMatch(/run\.completed[\s\S]*input_required[\s\S]*result:[\s\S]*Try next/);
    expect(pids.filter(birth)).toEqual([]);
    expect(existsSync(stackFile)).toBe(false);
  }, 120_000);

  it('writes down what runs, restarts what is killed, and stops everything when asked to', async () => {
    const run = await start('--no-demo');
    await until(() => existsSync(stackFile), 'stack.json', run);
    const first = stack();
    expect(first).toMatchObject({
      baseUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      mcpUrl: `${first.baseUrl}/mcp`,
      natsUrl: expect.stringMatching(/^nats:/),
      databaseUrl: expect.stringMatching(/^postgresql:/),
      keys: { primary: expect.any(String), secondary: expect.any(String), lowScope: expect.any(String), tenantB: expect.any(String) },
    });
    expect(Object.keys(first.pids).sort()).toEqual(['authz', 'engine', 'gateway', 'mcp-client', 'mcp-server', 'nats', 'postgres']);
    expect(statSync(stackFile).mode & 0o077).toBe(0);

    const [engine] = first.pids.engine;
    process.kill(engine, 'SIGKILL');
    await until(() => !stack().pids.engine.includes(engine) && stack().pids.engine.length === 1, 'the restart', run);

    const second = await start('--no-demo');
    expect(await second.ended).toEqual({ code: 1, signal: null });
    expect(second.output).toContain('This clone is already running');
    expect(existsSync(stackFile)).toBe(true);

    const pids = everyPid(stack());
    run.child.kill('SIGTERM');
    expect(await run.ended).toEqual({ code: 0, signal: null });
    expect(pids.filter(birth)).toEqual([]);
  }, 120_000);

  it('starts after a start that was killed, with the same keys, and leaves nothing of it', async () => {
    const killed = await start('--no-demo');
    await until(() => existsSync(stackFile), 'stack.json', killed);
    const before = stack();
    killed.child.kill('SIGKILL');
    await killed.ended;

    const run = await start('--no-demo');
    await until(() => existsSync(stackFile) && stack().baseUrl !== before.baseUrl, 'the second stack', run);
    const after = stack();
    expect(everyPid(before).filter(birth)).toEqual([]);
    expect(after.keys).toEqual(before.keys);
    run.child.kill('SIGTERM');
    expect(await run.ended).toEqual({ code: 0, signal: null });
  }, 120_000);
});
