import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { birth } from './ledger.mjs';

// In processes of their own: each has its own folder to remember things in.
const folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-ledger-'));
const env = { ...process.env, ISTHMUS_DEV_DIR: folder };
const module = JSON.stringify(path.join(import.meta.dirname, 'ledger.mjs'));
const options = { env, encoding: 'utf8' };

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Something that runs on, written down by an owner that is dead by now. */
function abandon(extra = '') {
  const script = `
    import { spawn } from 'node:child_process';
    import { Ledger } from ${module};
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' });
    const ledger = new Ledger('start');
    ledger.add('engine', child.pid);
    ${extra}
    console.log(child.pid);
    process.kill(process.pid, 'SIGKILL');`;
  return Number(spawnSync(process.execPath, ['--input-type=module', '-e', script], options).stdout);
}

const sweep = () => {
  const script = `import { sweep } from ${module}; console.log(JSON.stringify(await sweep()));`;
  return JSON.parse(spawnSync(process.execPath, ['--input-type=module', '-e', script], options).stdout);
};

describe('the ledger', () => {
  it('lets the next start end what a killed one left running', () => {
    const pid = abandon();
    expect(birth(pid)).toBeDefined();
    expect(sweep()).toEqual({ running: [], ended: 1 });
    expect(birth(pid)).toBeUndefined();
    expect(sweep()).toEqual({ running: [], ended: 0 });
  });

  it('leaves a process alone that only has the same pid', () => {
    const bystander = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    abandon(`ledger.note({ processes: [{ name: 'engine', pid: ${bystander.pid}, born: 'another time' }] }); child.kill('SIGKILL');`);
    expect(sweep().ended).toBe(0);
    expect(birth(bystander.pid)).toBeDefined();
    bystander.kill('SIGKILL');
  });

  it('removes folders that have no meaning without their command', () => {
    const left = mkdtempSync(path.join(os.tmpdir(), 'isthmus-left-'));
    abandon(`ledger.addFolder(${JSON.stringify(left)});`);
    sweep();
    expect(existsSync(left)).toBe(false);
  });

  it('reports a command that is still alive, and touches nothing of it', async () => {
    const script = `import { Ledger } from ${module}; new Ledger('start').note({ baseUrl: 'http://127.0.0.1:1' }); console.log('up'); setInterval(() => {}, 1000);`;
    const owner = spawn(process.execPath, ['--input-type=module', '-e', script], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise((resolve) => owner.stdout.once('data', resolve));
    expect(sweep()).toMatchObject({ running: [{ kind: 'start', baseUrl: 'http://127.0.0.1:1', owner: { pid: owner.pid } }], ended: 0 });
    owner.kill('SIGKILL');
  });
});
