import { describe, expect, it } from '@jest/globals';
import { answeredHeaders, forwardedHeaders } from './forwarded-headers.js';

describe('headers through the tunnel', () => {
  it('go on as they came, but for credentials and what speaks of one connection', () => {
    const raw = [
      'Host',
      'localhost',
      'Authorization',
      'Bearer secret',
      'Cookie',
      'a=b',
      'Connection',
      'keep-alive, X-Hop',
      'X-Hop',
      '1',
      'Transfer-Encoding',
      'chunked',
      'Mcp-Name',
      'a, b',
      'Accept',
      'application/json',
    ];
    expect(forwardedHeaders(raw)).toEqual([
      ['host', 'localhost'],
      ['mcp-name', 'a, b'],
      ['accept', 'application/json'],
    ]);
  });

  it('come back without length and connection, repeated ones kept apart', () => {
    const answered = answeredHeaders([
      ['Content-Type', 'text/event-stream'],
      ['Content-Length', '3'],
      ['Connection', 'close'],
      ['X-A', '1'],
      ['x-a', '2'],
    ]);
    expect(answered).toEqual({ 'content-type': 'text/event-stream', 'x-a': ['1', '2'] });
  });
});
