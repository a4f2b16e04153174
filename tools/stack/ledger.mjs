// What this clone has started, on disk, so that the next start can clear away what a killed one left behind.
// One file per stack that runs, named after the process that looks after it.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { readJson, writeAtomically } from '../files.mjs';
import { inDev } from '../paths.mjs';

const folder = () => inDev('run', 'x').slice(0, -2);

/** When a process was born; a reused pid has another birth. Undefined when there is no such process. */
export function birth(pid) {
  if (process.platform !== 'linux') {
    try {
      return (
        execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim() ||
        undefined
      );
    } catch {
      return undefined;
    }
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

const isAlive = ({ pid, born }) => born !== undefined && birth(pid) === born;

export class Ledger {
  #file;
  #page;

  constructor(kind) {
    this.#file = inDev('run', `${process.pid}-${randomBytes(3).toString('hex')}.json`);
    this.#page = { kind, owner: { pid: process.pid, born: birth(process.pid) }, processes: [], folders: [] };
    this.#write();
  }

  add(name, pid) {
    this.#page.processes.push({ name, pid, born: birth(pid) });
    this.#write();
  }

  remove(pid) {
    this.#page.processes = this.#page.processes.filter((entry) => entry.pid !== pid);
    this.#write();
  }

  /** A folder that has no meaning without its command. */
  addFolder(path) {
    this.#page.folders.push(path);
    this.#write();
  }

  note(facts) {
    Object.assign(this.#page, facts);
    this.#write();
  }

  close() {
    rmSync(this.#file, { force: true });
  }

  #write() {
    writeAtomically(this.#file, JSON.stringify(this.#page));
  }
}

/** Ends whatever killed commands of this clone left running; answers the pages of those that are still alive, and how many processes it ended. */
export async function sweep() {
  const running = [];
  let ended = 0;
  for (const name of readdirSync(folder()).filter((file) => file.endsWith('.json'))) {
    const file = `${folder()}/${name}`;
    const page = readJson(file);
    if (page && isAlive(page.owner)) {
      if (page.owner.pid !== process.pid) running.push(page);
      continue;
    }
    // Services first, then what they stand on.
    for (const entry of page?.processes.toReversed() ?? []) if (await end(entry)) ended += 1;
    for (const left of page?.folders ?? []) rmSync(left, { recursive: true, force: true });
    rmSync(file, { force: true });
  }
  return { running, ended };
}

async function end(entry) {
  if (!isAlive(entry)) return false;
  // Postgres gets the chance to write a clean checkpoint; everything else is built to be killed.
  if (entry.name === 'postgres') {
    signal(entry.pid, 'SIGINT');
    for (let waited = 0; waited < 5_000 && isAlive(entry); waited += 50) await sleep(50);
  }
  signal(-entry.pid, 'SIGKILL');
  signal(entry.pid, 'SIGKILL');
  for (let waited = 0; waited < 5_000 && isAlive(entry); waited += 20) await sleep(20);
  return true;
}

function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
