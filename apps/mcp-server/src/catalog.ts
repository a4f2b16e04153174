import type { Exposure, Json, JsonObject } from '@isthmus/protocol';
import { isObject } from './read-message.js';
import { paramHeaders, type ParamHeader } from './param-headers.js';
import { complete, invalidParams } from './rpc.js';

/** Tools in one page of a list. (rulings "MCP mount": at least 500) */
export const PAGE_SIZE = 500;

/** A workflow that is exposed as a tool. */
export type ExposedTool = {
  readonly name: string;
  readonly workflowId: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject;
  /** As `tools/list` shows it. */
  readonly entry: JsonObject;
  readonly headers: readonly ParamHeader[];
};

/** The tools of one version of a mount, in the order of their names. */
export class Catalog {
  static readonly EMPTY = new Catalog('', []);
  private readonly byName: ReadonlyMap<string, ExposedTool>;
  private readonly pages = new Map<string, Uint8Array>();

  constructor(
    readonly version: string,
    readonly tools: readonly ExposedTool[],
  ) {
    this.byName = new Map(tools.map((tool) => [tool.name, tool]));
  }

  static of(version: string, exposures: readonly Exposure[]): Catalog {
    const tools = exposures.flatMap((exposure) => (exposure.kind === 'tool' ? (toTool(exposure) ?? []) : []));
    // By UTF-16 code unit, which is what `<` compares: the same list on every host, whatever its locale.
    return new Catalog(
      version,
      tools.sort((a, b) => (a.name < b.name ? -1 : 1)),
    );
  }

  tool(name: string): ExposedTool | undefined {
    return this.byName.get(name);
  }

  /** A page of `tools/list` as bytes, made once: a list is asked for far more often than it changes. */
  page(cursor?: string): Uint8Array {
    const key = cursor === undefined ? 'first' : `after ${cursor}`;
    const known = this.pages.get(key);
    if (known) return known;
    const after = cursor === undefined ? undefined : afterOf(cursor);
    const rest = after === undefined ? this.tools : this.tools.filter(({ name }) => name > after);
    const shown = rest.slice(0, PAGE_SIZE);
    const last = rest.length > PAGE_SIZE ? shown.at(-1) : undefined;
    const bytes = new TextEncoder().encode(
      JSON.stringify(
        complete({
          tools: shown.map(({ entry }) => entry),
          ...(last && { nextCursor: cursorAfter(last.name) }),
          // A registration is seen by the very next request (traps.md 18): any longer time would have an honest client miss it.
          ttlMs: 0,
          cacheScope: 'private',
        }),
      ),
    );
    // Only cursors that we give out are kept, so that invented ones take no memory.
    if (after === undefined || this.byName.has(after)) this.pages.set(key, bytes);
    return bytes;
  }
}

const SHOWN = ['title', 'description', 'annotations', 'icons'] as const;

/** The tool a manifest describes; undefined where MCP knows no such tool. Schemas are published as their author wrote them. */
function toTool({ name, workflowId, manifest }: Exposure): ExposedTool | undefined {
  const inputSchema = manifest['inputSchema'] ?? { type: 'object' };
  const outputSchema = manifest['outputSchema'];
  if (!isObject(inputSchema) || (inputSchema['type'] ?? 'object') !== 'object') return undefined;
  const rooted: JsonObject = inputSchema['type'] === 'object' ? inputSchema : { ...inputSchema, type: 'object' };
  const entry: { [key: string]: Json } = { name };
  for (const key of SHOWN) if (manifest[key] !== undefined) entry[key] = manifest[key] as Json;
  entry['inputSchema'] = rooted;
  if (isObject(outputSchema)) entry['outputSchema'] = outputSchema;
  return { name, workflowId, inputSchema: rooted, ...(isObject(outputSchema) && { outputSchema }), entry, headers: paramHeaders(rooted) };
}

const cursorAfter = (name: string): string => Buffer.from(JSON.stringify(name)).toString('base64url');

function afterOf(cursor: string): string {
  try {
    const name: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (typeof name === 'string' && cursorAfter(name) === cursor) return name;
  } catch {
    // falls through: not one of ours
  }
  throw invalidParams('The cursor is not one that this server gave out.');
}
