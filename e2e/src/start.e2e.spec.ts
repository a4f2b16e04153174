import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { until } from '@isthmus/testing';
import type { StackDescription } from '../../tools/stack/host.mjs';
import { root } from './operator.js';

/** What tools/start.e2e.spec.mjs does not show already: `npm start` as it is typed, and Ctrl-C. */
const folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-start-'));
const stackFile = path.join(folder, 'stack.json');
const started: ChildProcess[] = [];

afterAll(async () => {
  for (const child of started) if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
});

type Command = { readonly child: ChildProcess; readonly output: () => string; readonly ended: Promise<number | null> };

/** In a process group of its own, as a terminal runs it: Ctrl-C reaches npm and what npm runs alike. */
function npmStart(flags: readonly string[], env: Record<string, string> = {}): Command {
  const { DATABASE_URL: _database, NATS_URL: _nats, npm_lifecycle_event: _event, ...rest } = process.env;
  const child = spawn('npm', ['start', '--silent', '--', ...flags], {
    cwd: root,
    env: { ...rest, ISTHMUS_DEV_DIR: folder, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  started.push(child);
  const said: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => said.push(chunk.toString()));
  return { child, output: () => said.join(''), ended: once(child, 'close').then(([code]) => code as number | null) };
}
const ctrlC = ({ child }: Command): void => void process.kill(-(child.pid as number), 'SIGINT');

/** The processes that commands of this folder have written down as theirs. */
const written = (): number[] =>
  (existsSync(path.join(folder, 'run')) ? readdirSync(path.join(folder, 'run')) : [])
    .map((name) => JSON.parse(readFileSync(path.join(folder, 'run', name), 'utf8')) as { processes: { pid: number }[] })
    .flatMap(({ processes }) => processes.map(({ pid }) => pid));
/** A process that has ended may still have a line until somebody looks after it. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
const happens = (what: string, is: () => boolean, { output, child }: Command): Promise<unknown> =>
  until(
    () => {
      if (child.exitCode !== null) throw new Error(output());
      return is();
    },
    { timeoutMs: 90_000, everyMs: 20, what },
  );

describe('npm start', () => {
  it('tells how it is used', async () => {
    const { ended, output } = npmStart(['--help']);
    expect(await ended).toBe(0);
    for (const flag of ['--once', '--no-demo', '--conformance', 'PORT']) expect(output()).toContain(flag);
  }, 60_000);

  it('says what is wrong in one sentence, starts nothing and ends with 1', async () => {
    const somebody = createServer();
    await new Promise<void>((resolve) => {
      somebody.listen(0, '127.0.0.1', resolve);
    });
    const { port } = somebody.address() as AddressInfo;
    try {
      for (const [flags, env, sentence] of [
        [['--bogus'], {}, /^Unknown flag "--bogus": use .*\.$/m],
        [[], { PORT: String(port) }, new RegExp(`^Port ${port} is in use: set PORT to another one, .*\\.$`, 'm')],
        [[], { PORT: 'http' }, /^PORT must be a number from 0 to 65535, not "http"\.$/m],
        [[], { NATS_URL: `nats://127.0.0.1:${port}` }, /^NATS_URL is set, but no NATS server answers at .*\.$/m],
      ] as const) {
        const { ended, output } = npmStart(flags, env);
        expect(await ended).toBe(1);
        expect(output()).toMatch(sentence);
        expect(output()).not.toMatch(/\bat .+:\d+:\d+|Error:/);
        expect(existsSync(stackFile)).toBe(false);
        expect(written()).toEqual([]);
      }
    } finally {
      somebody.close();
    }
  }, 60_000);

  it('ends on Ctrl-C while it is still starting, and leaves nothing', async () => {
    const command = npmStart(['--no-demo']);
    await happens('the first processes', () => written().length >= 4, command);
    const pids = written();
    ctrlC(command);
    await command.ended;
    expect(pids.filter(isAlive)).toEqual([]);
    expect([existsSync(stackFile), written()]).toEqual([false, []]);
  }, 120_000);

  it('ends on Ctrl-C while it serves, and leaves nothing', async () => {
    const command = npmStart(['--no-demo']);
    await happens('stack.json', () => existsSync(stackFile), command);
    const stack = JSON.parse(readFileSync(stackFile, 'utf8')) as StackDescription;
    const pids = Object.values(stack.pids).flat();
    expect(pids).toHaveLength(7);
    expect((await fetch(`${stack.baseUrl}/.well-known/openwop`)).status).toBe(200);
    ctrlC(command);
    ctrlC(command); // npm passes the first one on, so it often comes twice
    await command.ended;
    expect(command.output()).toContain('Stopping');
    expect(pids.filter(isAlive)).toEqual([]);
    expect([existsSync(stackFile), written()]).toEqual([false, []]);
    await expect(fetch(stack.baseUrl)).rejects.toThrow();
  }, 120_000);
});
