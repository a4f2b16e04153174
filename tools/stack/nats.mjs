// NATS as a child process: the server that is on the machine, or Debian's package.
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { readJson } from '../files.mjs';
import { complete } from '../run.mjs';
import { Advice, step } from '../say.mjs';
import { Supervised } from './supervised.mjs';

/** Finds `nats-server`, installing Debian's package where that is possible; else one message that lists the options. */
export async function findNats({ signal } = {}) {
  const found = onPath('nats-server');
  if (found) return found;
  if (process.getuid?.() === 0 && existsSync('/etc/debian_version') && onPath('apt-get')) {
    await step('nats-server installed with apt-get (it was not on this machine)', async () => void (await installOnDebian(signal))).catch(
      (error) => {
        if (signal?.aborted) throw error;
      },
    );
    const installed = onPath('nats-server');
    if (installed) return installed;
  }
  throw new Advice(
    [
      'Isthmus needs a NATS server, and there is no nats-server on PATH. Do one of these and start again:',
      '  - install it:            apt-get install nats-server   (macOS: brew install nats-server)',
      '  - or let Docker run it:  docker compose up -d nats     (then NATS_URL=nats://127.0.0.1:4222)',
      '  - or name a running one: NATS_URL=nats://host:4222',
    ].join('\n'),
  );
}

/**
 * Resolves when it answers: { url, process, stop }. Its port is chosen by the kernel and kept over restarts. With `rooms`, users
 * `room-1` … `room-n` hear only themselves: test files that run side by side share the server and no subject.
 */
export async function startNats({ watch = {}, logFile, signal, rooms = 0 } = {}) {
  const command = await findNats({ signal });
  const home = mkdtempSync(path.join(os.tmpdir(), 'isthmus-nats-'));
  watch.ledger?.addFolder(home);
  const config = rooms ? ['-c', writeRooms(home, rooms)] : [];
  let port;
  let process;
  const plan = {
    name: 'nats',
    service: 'nats',
    attempts: 3,
    logFile: logFile ?? undefined,
    launch: () => ({ command, args: [...config, '-a', '127.0.0.1', '-p', String(port ?? -1), '--ports_file_dir', home], cwd: home }),
    isReady: async () => {
      port ??= Number(new URL(readJson(path.join(home, `${path.basename(command)}_${process.pid}.ports`)).nats[0]).port);
      return greets('127.0.0.1', port);
    },
  };
  process = new Supervised(plan, watch);
  await process.start();
  const stop = async () => {
    await process.stop();
    rmSync(home, { recursive: true, force: true });
  };
  return { url: `nats://127.0.0.1:${port}`, process, stop };
}

/** One account each; who names none is in the first. The password guards nothing: the server is on loopback and holds nothing. */
function writeRooms(home, rooms) {
  const file = path.join(home, 'nats.conf');
  writeFileSync(file, roomsConfig(rooms));
  return file;
}

/** The text of that configuration. */
export function roomsConfig(rooms) {
  const accounts = Array.from(
    { length: rooms },
    (_, index) => `room${index + 1} { users: [{ user: "room-${index + 1}", password: "room" }] }`,
  );
  return `accounts {\n${accounts.join('\n')}\n}\nno_auth_user: "room-1"\n`;
}

/** Throws one clear sentence unless the user's own server answers. */
export async function requireNats(url) {
  let server;
  try {
    server = new URL(url.split(',')[0].includes('://') ? url.split(',')[0] : `nats://${url.split(',')[0]}`);
  } catch {
    throw new Advice(`NATS_URL is not a URL: "${url}".`);
  }
  if (await greets(server.hostname.replace(/^\[|\]$/g, ''), Number(server.port || 4222)).catch(() => false)) return;
  throw new Advice(
    `NATS_URL is set, but no NATS server answers at ${server.host}: start it, or unset NATS_URL to have one started for you.`,
  );
}

/** The first thing a NATS server says is INFO. */
function greets(host, port) {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host, port });
    socket.setTimeout(2_000, () => socket.destroy(new Error('no greeting')));
    socket.once('data', (chunk) => {
      socket.destroy();
      resolve(chunk.toString('latin1').startsWith('INFO '));
    });
    socket.once('error', reject);
  });
}

function onPath(name) {
  const folders = [...(process.env.PATH ?? '').split(path.delimiter), '/usr/sbin', '/usr/local/sbin'];
  return folders
    .filter(Boolean)
    .map((folder) => path.join(folder, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

async function installOnDebian(signal) {
  const options = { stdio: ['ignore', 'pipe', 'pipe'], signal, env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  await complete(spawn('apt-get', ['update', '-qq'], options), 'apt-get update').catch(() => {}); // a stale list may still do
  await complete(
    spawn('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'nats-server'], options),
    'apt-get install nats-server',
  );
}
