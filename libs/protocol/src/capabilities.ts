import { z } from 'zod';
import { JsonObject, type Json } from './json.js';

/**
 * What one service honestly does, as a part of the discovery document. A family that is not built is absent.
 * (capabilities.md; the document's root is open)
 */
export const Description = z.strictObject({ service: z.string(), version: z.string(), discovery: JsonObject });
export type Description = z.infer<typeof Description>;

/**
 * The discovery document out of the services' parts: parts are taken in the order of the services' names, so
 * that every gateway gives the same bytes; objects merge, arrays unite, and of two other values the later one stands.
 */
export function mergeDescriptions(parts: readonly Description[]): JsonObject {
  const ordered = [...parts].sort((a, b) => (a.service < b.service ? -1 : 1));
  return ordered.reduce<JsonObject>((document, part) => merge(document, part.discovery) as JsonObject, {});
}

function merge(left: Json | undefined, right: Json): Json {
  if (left === undefined) return right;
  if (Array.isArray(left) && Array.isArray(right)) return [...new Set([...left, ...right])];
  if (isObject(left) && isObject(right)) {
    const merged: Record<string, Json> = { ...left };
    for (const [key, value] of Object.entries(right)) merged[key] = merge(merged[key], value);
    return merged;
  }
  return right;
}

const isObject = (value: Json): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);
