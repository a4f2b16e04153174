import { describe, expect, it } from '@jest/globals';
import type { Exposure, JsonObject } from '@isthmus/protocol';
import { Catalog, PAGE_SIZE } from './catalog.js';

const exposure = (name: string, manifest: JsonObject = {}): Exposure => ({
  kind: 'tool',
  name,
  workflowId: `wf-${name}`,
  nodeId: 'n',
  manifest: { name, ...manifest },
});
type Page = { readonly tools: readonly { readonly name: string; readonly inputSchema: unknown }[]; readonly nextCursor?: string };
const read = (bytes: Uint8Array): Page => JSON.parse(Buffer.from(bytes).toString());

describe('a catalog', () => {
  it('sorts by UTF-16 code unit, not by locale', () => {
    const names = ['b', 'a', 'B', 'Z', 'é', 'z', '_', '10', '9', '\u{1F600}', '\uFF5E'];
    const page = read(
      Catalog.of(
        '1',
        names.map((name) => exposure(name)),
      ).page(),
    );
    expect(page.tools.map(({ name }) => name)).toEqual([...names].sort());
    expect(page.tools.at(-2)?.name).toBe('\u{1F600}');
  });

  it('publishes schemas as they were written, and nothing of the manifest that MCP does not know', () => {
    const inputSchema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: { a: { $anchor: 'x' } },
      if: { required: ['b'] },
      additionalProperties: false,
    };
    const { tools } = read(
      Catalog.of('1', [
        exposure('t', {
          title: 'T',
          description: 'd',
          inputSchema,
          outputSchema: { type: 'string' },
          annotations: { readOnlyHint: true },
          handler: 'secret',
        }),
      ]).page(),
    );
    expect(tools).toEqual([
      { name: 't', title: 'T', description: 'd', annotations: { readOnlyHint: true }, inputSchema, outputSchema: { type: 'string' } },
    ]);
  });

  it('gives a tool without a schema an open object, and leaves out one whose arguments are no object', () => {
    const catalog = Catalog.of('1', [
      exposure('open'),
      exposure('rootless', { inputSchema: { properties: {} } }),
      exposure('text', { inputSchema: { type: 'string' } }),
    ]);
    expect(read(catalog.page()).tools.map(({ name, inputSchema }) => [name, inputSchema])).toEqual([
      ['open', { type: 'object' }],
      ['rootless', { properties: {}, type: 'object' }],
    ]);
    expect(catalog.tool('text')).toBeUndefined();
  });

  it('gives the same bytes for the same version, whatever the order of the exposures', () => {
    const some = ['c', 'a', 'b'].map((name) => exposure(name, { description: name }));
    expect(Buffer.from(Catalog.of('1', some).page()).equals(Buffer.from(Catalog.of('1', [...some].reverse()).page()))).toBe(true);
  });

  it('is cut into pages that together are the whole list, in order and without a repeat', () => {
    const names = Array.from({ length: PAGE_SIZE * 2 + 1 }, (_, at) => `tool-${String(at).padStart(5, '0')}`);
    const catalog = Catalog.of(
      '1',
      names.map((name) => exposure(name)),
    );
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = read(catalog.page(cursor));
      seen.push(...page.tools.map(({ name }) => name));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(seen).toEqual(names);
  });

  it.each(['', 'x', 'bm9wZQ', Buffer.from('5').toString('base64url')])('refuses the cursor "%s", which it did not give out', (cursor) => {
    const catalog = Catalog.of('1', [exposure('a')]);
    catalog.page();
    expect(() => catalog.page(cursor)).toThrow(expect.objectContaining({ code: -32602 }));
  });

  it('is private, and its ttl lets nobody miss a registration', () => {
    expect(read(Catalog.EMPTY.page())).toMatchObject({ resultType: 'complete', tools: [], ttlMs: 0, cacheScope: 'private' });
  });
});
