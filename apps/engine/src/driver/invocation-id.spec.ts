import { describe, expect, it } from '@jest/globals';
import { logicalInvocationId } from './invocation-id.js';

const parts = { tenant: 'acme', runId: '00000000-0000-7000-8000-000000000001', nodeId: 'tool', ordinal: 0, providerKey: 'mcp:remote' };

describe('the identity of a logical effect', () => {
  it('is what remote servers have seen before: it never changes', () => {
    expect(logicalInvocationId(parts)).toBe('xAaPcd1LEQj73uMcPKrDeb37PdMkoC5xhWSRYihkqbo');
  });

  it('is another one for another tenant, run, node, ordinal or server, also when their texts run together', () => {
    const others = [
      { ...parts, tenant: 'acm', runId: `e${parts.runId}` },
      { ...parts, runId: '00000000-0000-7000-8000-000000000002' },
      { ...parts, nodeId: 'tool0' },
      { ...parts, ordinal: 1 },
      { ...parts, providerKey: 'mcp:other' },
    ];
    const ids = [parts, ...others].map(logicalInvocationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9_-]{43}$/);
  });
});
