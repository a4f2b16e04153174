import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Batches } from './batches.js';

const event = (sequence: number) => ({ sequence, type: 'node.started' });

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

describe('batches', () => {
  it('gather for their time, counted from the first event, and go out in one frame under the highest id', () => {
    const sent: string[] = [];
    const batches = new Batches(200, (text) => sent.push(text));
    batches.add([event(1)], false);
    jest.advanceTimersByTime(150);
    batches.add([event(2), event(3)], false);
    jest.advanceTimersByTime(49);
    expect(sent).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(sent).toEqual([`id: 3\nevent: batch\ndata: ${JSON.stringify([event(1), event(2), event(3)])}\n\n`]);
    jest.advanceTimersByTime(1_000);
    expect(sent).toHaveLength(1);
  });

  it('go out at once when something is urgent, even something that is not shown', () => {
    const sent: string[] = [];
    const batches = new Batches(5_000, (text) => sent.push(text));
    batches.add([event(1)], false);
    batches.add([], true);
    expect(sent).toHaveLength(1);
    batches.add([], true);
    batches.add([], false);
    expect([sent.length, jest.getTimerCount()]).toEqual([1, 0]);
  });
});
