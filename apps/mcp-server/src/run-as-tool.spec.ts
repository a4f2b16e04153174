import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@isthmus/protocol';
import { runAsTool } from './run-as-tool.js';

const completed = (outputs: JsonObject, outputSchema?: JsonObject) =>
  runAsTool('r', { is: 'completed', outputs, contentTrust: 'trusted' }, outputSchema);

describe('a run as a tool result', () => {
  it('that completed is its outputs, as data and as text', () => {
    expect(completed({ sum: 3 })).toEqual({
      content: [{ type: 'text', text: '{"sum":3}' }],
      structuredContent: { sum: 3 },
      _meta: { 'dev.isthmus/runId': 'r' },
    });
  });

  it('whose outputs are a tool result already stands as it is', () => {
    const outputs: JsonObject = {
      content: [
        { type: 'text', text: 'hi' },
        { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      ],
      structuredContent: { a: 1 },
      isError: true,
    };
    expect(completed(outputs)).toMatchObject(outputs);
  });

  it.each([
    [{ content: 'hi' }],
    [{ content: [] }],
    [{ content: [{ type: 'text' }] }],
    [{ content: [{ type: 'text', text: 'hi' }], other: 1 }],
    [{ content: [{ type: 'text', text: 'hi' }], isError: 'no' }],
  ])('whose outputs only look like one is data: %j', (outputs) => {
    expect(completed(outputs)).toMatchObject({ structuredContent: outputs });
  });

  it('says where untrusted content came from', () => {
    expect(runAsTool('r', { is: 'completed', outputs: {}, contentTrust: 'untrusted' })).toMatchObject({
      _meta: { 'dev.isthmus/contentTrust': 'untrusted' },
    });
  });

  it('that failed is an error a model can read, not a JSON-RPC error', () => {
    expect(runAsTool('r', { is: 'failed', error: { code: 'node_failed', message: 'No luck.' } })).toEqual({
      content: [{ type: 'text', text: 'node_failed: No luck.' }],
      isError: true,
      _meta: { 'dev.isthmus/runId': 'r', 'dev.isthmus/code': 'node_failed' },
    });
  });

  it('that was cancelled is tagged tool_canceled', () => {
    expect(runAsTool('r', { is: 'cancelled', reason: 'enough' })).toMatchObject({
      content: [{ type: 'text', text: 'tool_canceled: The run was cancelled (enough).' }],
      isError: true,
      _meta: { 'dev.isthmus/code': 'tool_canceled' },
    });
  });

  it('never breaks the promise of an outputSchema', () => {
    const schema = { type: 'object', required: ['sum'] };
    expect(completed({ sum: 3 }, schema)).toMatchObject({ structuredContent: { sum: 3 } });
    expect(completed({ total: 3 }, schema)).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('tool_output_invalid') as unknown }],
    });
    expect(runAsTool('r', { is: 'failed', error: { code: 'x', message: 'y' } }, schema)).toMatchObject({ isError: true });
  });
});
