import type { Json, JsonObject } from '@isthmus/protocol';

/** An argument that a tool wants mirrored in the header `Mcp-Param-{name}`. */
export type ParamHeader = { readonly name: string; readonly path: readonly string[]; readonly type: 'string' | 'integer' | 'boolean' };

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const MAX_DEPTH = 16;

/**
 * The `x-mcp-header` annotations of an input schema: on properties of the three types, reachable from the root through
 * `properties` alone. (spec/mcp.md §1.5)
 */
export function paramHeaders(schema: JsonObject): readonly ParamHeader[] {
  const found: ParamHeader[] = [];
  const taken = new Set<string>();
  const walk = (properties: Json | undefined, path: readonly string[]): void => {
    if (!isObject(properties) || path.length > MAX_DEPTH) return;
    for (const [key, property] of Object.entries(properties)) {
      if (!isObject(property)) continue;
      const { 'x-mcp-header': name, type } = property;
      if (typeof name === 'string' && TOKEN.test(name) && isMirrored(type) && !taken.has(name.toLowerCase())) {
        taken.add(name.toLowerCase());
        found.push({ name, path: [...path, key], type });
      }
      walk(property['properties'], [...path, key]);
    }
  };
  walk(schema['properties'], []);
  return found;
}

const isMirrored = (type: Json | undefined): type is ParamHeader['type'] => type === 'string' || type === 'integer' || type === 'boolean';
const isObject = (value: Json | undefined): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);
