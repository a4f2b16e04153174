import { setImmediate as turn } from 'node:timers/promises';
import { toRunEvent } from '@isthmus/protocol';
import { describe, expect, it } from '@jest/globals';
import { type Page, RunReader } from './run-reader.js';

/** A log that is read by hand: each read waits until the test lets it go. */
function aLog() {
  let length = 0;
  const reads: number[] = [];
  const waiting: (() => void)[] = [];
  return {
    reads,
    grow: (by = 1) => {
      length += by;
    },
    letGo: async () => {
      waiting.shift()?.();
      await turn();
    },
    read: async (from: number) => {
      reads.push(from);
      await new Promise<void>((resolve) => waiting.push(resolve));
      const events = Array.from({ length: Math.max(0, length - from) }, (_, at) =>
        toRunEvent('r', from + at, new Date(0), { type: 'node.started', payload: {} }),
      );
      return { from, next: Math.max(from, length), events, isOver: false, more: false };
    },
  };
}

function aWatcher() {
  const seen: number[] = [];
  const ends: unknown[] = [];
  return {
    seen,
    ends,
    offer: (page: Page) => void seen.push(...page.events.map(({ sequence }) => sequence)),
    abandon: (error: unknown) => void ends.push(error),
  };
}

describe('the reader of a run', () => {
  it('reads once for all its watchers', async () => {
    const log = aLog();
    const reader = new RunReader(log.read, () => false);
    const watchers = [aWatcher(), aWatcher(), aWatcher()];
    for (const watcher of watchers) reader.join(watcher);
    reader.startAt(0);
    log.grow(2);
    reader.poke();
    await log.letGo();
    expect(log.reads).toEqual([0]);
    for (const { seen } of watchers) expect(seen).toEqual([0, 1]);
  });

  it('reads again when it was poked while it read, and only once however often', async () => {
    const log = aLog();
    const reader = new RunReader(log.read, () => false);
    const watcher = aWatcher();
    reader.join(watcher);
    reader.startAt(0);
    log.grow();
    reader.poke();
    reader.poke();
    reader.poke();
    await log.letGo();
    log.grow();
    await log.letGo();
    expect(log.reads).toEqual([0, 1]);
    expect(watcher.seen).toEqual([0, 1]);
  });

  it('remembers a bell that rang before anyone said where to begin', async () => {
    const log = aLog();
    const reader = new RunReader(log.read, () => false);
    const watcher = aWatcher();
    reader.join(watcher);
    log.grow(3);
    reader.poke();
    expect(log.reads).toEqual([]);
    reader.startAt(2);
    await log.letGo();
    expect(watcher.seen).toEqual([2]);
  });

  it('does not leave a slower watcher behind when a faster one joins', async () => {
    const log = aLog();
    const reader = new RunReader(log.read, () => false);
    const slow = aWatcher();
    reader.join(slow);
    reader.startAt(1);
    log.grow(4);
    reader.join(aWatcher());
    reader.startAt(4);
    reader.poke();
    await log.letGo();
    expect(slow.seen).toEqual([1, 2, 3]);
  });

  it('is moved by a head only when that is news', async () => {
    const log = aLog();
    const reader = new RunReader(log.read, () => false);
    reader.join(aWatcher());
    reader.startAt(3);
    reader.heardOf(2);
    expect(log.reads).toEqual([]);
    reader.heardOf(3);
    expect(log.reads).toEqual([3]);
  });

  it('tells its watchers when the run is gone, and tries again later when it is only out of reach', async () => {
    let failure = new Error('out of reach');
    const reads: number[] = [];
    const reader = new RunReader(
      async (from) => {
        reads.push(from);
        throw failure;
      },
      (error) => (error as Error).message === 'gone',
    );
    const watcher = aWatcher();
    reader.join(watcher);
    reader.startAt(0);
    reader.poke();
    await turn();
    expect(watcher.ends).toEqual([]);
    failure = new Error('gone');
    reader.heardOf(0);
    await turn();
    expect(reads).toEqual([0, 0]);
    expect(watcher.ends).toEqual([failure]);
  });
});
