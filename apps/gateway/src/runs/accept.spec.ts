import { describe, expect, it } from '@jest/globals';
import { eventFormat } from './accept.js';

describe('the format of events', () => {
  it.each([
    [undefined, 'sse'],
    ['', 'sse'],
    ['*/*', 'sse'],
    ['text/event-stream', 'sse'],
    ['Text/Event-Stream', 'sse'],
    ['application/json, text/event-stream', 'sse'],
    ['application/json', 'json'],
    ['application/json; q=0.9, */*', 'json'],
    ['text/html', 'sse'],
  ])('for Accept %j is %s', (accept, format) => {
    expect(eventFormat(accept)).toBe(format);
  });
});
