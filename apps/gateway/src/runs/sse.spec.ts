import { toRunEvent } from '@isthmus/protocol';
import { describe, expect, it } from '@jest/globals';
import { batchFrame, frame, nextAfter, resumeFrom } from './sse.js';

describe('SSE frames', () => {
  it('carry the sequence, the type and the event in one line', () => {
    const event = toRunEvent('0190a000-0000-7000-8000-000000000001', 3, new Date(0), {
      type: 'node.completed',
      payload: { nodeId: 'n', outputs: { text: 'two\nlines\r\n' } },
    });
    const lines = frame(event).split('\n');
    expect(lines.slice(0, 2)).toEqual(['id: 3', 'event: node.completed']);
    expect(JSON.parse(lines[2]?.slice('data: '.length) ?? '')).toEqual(event);
    expect(lines.slice(3)).toEqual(['', '']);
  });

  it('carry several in order, under the highest sequence', () => {
    const events = [3, 7].map((sequence) => ({ sequence, type: 'node.started' }));
    expect(batchFrame(events)).toBe(`id: 7\nevent: batch\ndata: ${JSON.stringify(events)}\n\n`);
  });
});

describe('Last-Event-ID', () => {
  it.each([
    ['0', 1],
    ['41', 42],
    [' 41 ', 42],
    [undefined, 0],
    ['', 0],
    ['-1', 0],
    ['1.5', 0],
    ['abc', 0],
    ['1e3', 0],
    ['9'.repeat(40), 0],
  ])('%j goes on from %d', (id, from) => {
    expect(resumeFrom(id)).toBe(from);
  });

  it('stays in the numbers a log can have', () => {
    expect(resumeFrom('9999999999')).toBe(2_147_483_647);
    expect(nextAfter(9_999_999_999)).toBe(2_147_483_647);
  });
});
