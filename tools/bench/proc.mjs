// What the kernel counted per process. Linux only: elsewhere there is nothing to read, and the figures are missing.
import { readdirSync, readFileSync } from 'node:fs';

/** The kernel counts CPU time in hundredths of a second, whatever its own tick is. (proc(5), USER_HZ) */
const MS_PER_TICK = 10;

const read = (file) => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined; // the process has ended, or this is no Linux
  }
};

/** Fields from the third on: the second, the name, may hold spaces and brackets. */
const stat = (pid) => {
  const text = read(`/proc/${pid}/stat`);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ');
};

const own = (fields) => (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
const reaped = (fields) => (Number(fields[13]) + Number(fields[14])) * MS_PER_TICK;

/** CPU time of a process, of its children, and of those that have ended, in ms: a Postgres is one process per connection. */
function cpuOf(pid, children) {
  const fields = stat(pid);
  if (!fields) return Number.NaN;
  return own(fields) + reaped(fields) + (children.get(pid) ?? []).reduce((total, child) => total + cpuOf(child, children), 0);
}

/**
 * `read` and `write` calls of a process so far, over all its threads. Node's and Go's sockets go through them, Postgres' do not. A
 * busy machine does not change how many there are.
 */
function callsOf(pid) {
  const count = (name, text) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(text ?? '')?.[1] ?? Number.NaN);
  const text = read(`/proc/${pid}/io`);
  return count('syscr', text) + count('syscw', text);
}

function childrenByParent() {
  const children = new Map();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(stat(name)?.[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  return children;
}

const perGroup = (groups, of) =>
  Object.fromEntries(
    Object.entries(groups).map(([name, pids]) => [name, pids.length > 0 ? pids.reduce((total, pid) => total + of(pid), 0) : Number.NaN]),
  );

/** `{ name: pids }` → `{ name: ms of CPU so far }`, and under `machine` what all processes there are have used. */
export function cpu(groups) {
  if (process.platform !== 'linux') return { ...perGroup(groups, () => Number.NaN), machine: Number.NaN };
  const children = childrenByParent();
  return { ...perGroup(groups, (pid) => cpuOf(pid, children)), machine: busy() };
}

/** user + nice + system + irq + softirq, over all cores. */
function busy() {
  const [, user, nice, system, , , irq, softirq] = read('/proc/stat').split('\n', 1)[0].split(/\s+/).map(Number);
  return (user + nice + system + irq + softirq) * MS_PER_TICK;
}

/** `{ name: pids }` → `{ name: read and write calls so far }`. */
export const calls = (groups) => perGroup(groups, callsOf);

/** Resident memory in MB; what several processes share counts in each. */
export function memory(groups) {
  const each = perGroup(groups, (pid) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1] ?? Number.NaN) / 1024);
  return { ...each, total: Object.values(each).reduce((total, value) => total + value, 0) };
}
