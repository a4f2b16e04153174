import { describe, expect, it } from '@jest/globals';
import { Ending } from './drain.js';
import { createLogger } from './logger.js';

const logger = createLogger({ service: 'engine', instance: 'test', level: 'silent' });
const ending = (drainMs: number) => {
  const codes: number[] = [];
  return { ending: new Ending(logger, drainMs, (code) => void codes.push(code)), codes };
};

describe('the end of a process', () => {
  it('runs its steps in order, even when one fails, and exits with 0', async () => {
    const { ending: end, codes } = ending(1_000);
    const ran: string[] = [];
    end.add(async () => {
      await Promise.resolve();
      ran.push('first');
    });
    end.add(() => Promise.reject(new Error('broken')));
    end.add(() => void ran.push('last'));
    await end.end('SIGTERM');
    expect(ran).toEqual(['first', 'last']);
    expect(codes).toEqual([0]);
  });

  it('does not wait longer than the time for draining', async () => {
    const { ending: end, codes } = ending(20);
    end.add(() => new Promise(() => {}));
    await end.end('SIGTERM');
    expect(codes).toEqual([0]);
  });

  it('happens once, however many signals come', async () => {
    const { ending: end, codes } = ending(1_000);
    let runs = 0;
    end.add(() => {
      runs += 1;
    });
    await Promise.all([end.end('SIGTERM'), end.end('SIGINT')]);
    expect([runs, codes, end.signal.aborted]).toEqual([1, [0], true]);
  });
});
