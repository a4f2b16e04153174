import { setTimeout as sleep } from 'node:timers/promises';
import { birth } from './ledger.mjs';
import { Supervised } from './supervised.mjs';

const plan = (script, more = {}) => ({
  name: 'thing-1',
  service: 'thing',
  launch: () => ({ command: process.execPath, args: ['-e', script] }),
  isReady: async () => true,
  ...more,
});

const FOREVER = 'setInterval(() => {}, 1000)';

async function until(claim) {
  while (!claim()) await sleep(10);
}

describe('a supervised process', () => {
  it('is started again at once when it is killed, under a new pid', async () => {
    const ends = [];
    const thing = new Supervised(plan(FOREVER), { ended: (_process, how) => ends.push(how) });
    await thing.start();
    const first = thing.pid;
    const began = Date.now();
    thing.signal('SIGKILL');
    await until(() => thing.pid !== undefined && thing.pid !== first);
    expect(Date.now() - began).toBeLessThan(2_000);
    expect(ends).toEqual([{ code: null, signal: 'SIGKILL', isExpected: false }]);
    await thing.stop();
    expect(birth(first)).toBeUndefined();
  });

  it('waits longer between restarts the more often it ends', async () => {
    const starts = [];
    const thing = new Supervised(plan('process.exit(1)', { attempts: 4, isReady: async () => false }), {
      started: () => starts.push(Date.now()),
    });
    await expect(thing.start()).rejects.toThrow(/^thing-1 ended 4 times before it was ready/);
    const pauses = starts.slice(1).map((at, index) => at - starts[index]);
    expect(pauses.length).toBeGreaterThanOrEqual(3);
    expect(pauses[1]).toBeGreaterThanOrEqual(200);
    expect(pauses[2]).toBeGreaterThanOrEqual(400);
  });

  it('says what it last printed when it never becomes ready', async () => {
    const thing = new Supervised(plan('console.error("no such table"); process.exit(1)', { attempts: 1, isReady: async () => false }));
    await expect(thing.start()).rejects.toThrow(/no such table/);
  });

  it('stays down once it is stopped, and takes its own children with it', async () => {
    const lines = [];
    const script = `const c = require('child_process').spawn(process.execPath, ['-e', '${FOREVER}']); console.log(c.pid); ${FOREVER}`;
    const thing = new Supervised(plan(script), { line: (_process, _stream, text) => lines.push(text) });
    await thing.start();
    await until(() => lines.length > 0);
    await thing.stop();
    expect(thing.pid).toBeUndefined();
    await until(() => birth(Number(lines[0])) === undefined);
  });

  it('is killed when it does not stop in time, even if it was frozen', async () => {
    const script = `process.on('SIGTERM', () => {}); console.log('up'); ${FOREVER}`;
    let isUp = false;
    const thing = new Supervised(plan(script, { grace: 200, isReady: async () => isUp }), { line: () => (isUp = true) });
    await thing.start();
    thing.signal('SIGSTOP');
    await thing.stop();
    expect(thing.pid).toBeUndefined();
  });
});
