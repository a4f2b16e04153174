import { describe, expect, it } from '@jest/globals';
import { doubledHeader } from './header-rules.js';

describe('doubled headers', () => {
  it.each([
    [['Authorization', 'Bearer a', 'authorization', 'Bearer b'], 'authorization'],
    [['Authorization', 'Bearer a, Bearer b'], 'authorization'],
    [['Idempotency-Key', 'a', 'IDEMPOTENCY-KEY', 'a'], 'idempotency-key'],
    [['Idempotency-Key', 'a,b'], 'idempotency-key'],
    [['Content-Type', 'application/json, text/plain'], 'content-type'],
    [['Host', 'a', 'Host', 'b'], 'host'],
    [['Mcp-Method', 'tools/list', 'Mcp-Method', 'tools/call'], 'mcp-method'],
    [['MCP-Protocol-Version', '2026-07-28, 2025-11-25'], 'mcp-protocol-version'],
    [['Mcp-Param-Region', 'a', 'mcp-param-region', 'b'], 'mcp-param-region'],
  ])('finds %j', (rawHeaders, name) => {
    expect(doubledHeader(rawHeaders)).toBe(name);
  });

  it.each([
    [['Accept', 'application/json', 'Accept', 'text/event-stream']],
    [['Mcp-Name', 'one, two']],
    [['Mcp-Param-Text', 'a,b']],
    [['If-None-Match', '"a", "b"']],
    [[]],
  ])('lets %j pass: it may hold several, or a comma', (rawHeaders) => {
    expect(doubledHeader(rawHeaders)).toBeUndefined();
  });
});
