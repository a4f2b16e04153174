import { z } from 'zod';
import { maskCredentials } from './secrets.js';

/** Any JSON value. (RFC 8259; bounds below are ours) */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

/** A JSON value that was parsed at the door already: contracts between services do not walk it again. */
export const Json = z.custom<Json>((value) => value !== undefined);
export const JsonObject = z.custom<JsonObject>((value) => typeof value === 'object' && value !== null && !Array.isArray(value));

/** Nesting a request may have before it is refused: recursive parsers behind us are never deeper than this. */
export const MAX_JSON_DEPTH = 64;

const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/;

/**
 * Why `value` cannot be stored, or undefined when it can: Postgres text holds neither U+0000 nor lone surrogates, and
 * depth is bounded. Iterative, so that a hostile document cannot overflow the stack that checks it.
 * @returns a sentence part such as `"inputs.a" contains U+0000`, naming the place
 */
export function jsonProblem(value: unknown): string | undefined {
  const stack: { value: unknown; path: string; depth: number }[] = [{ value, path: '', depth: 0 }];
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { value: item, path, depth } = next;
    if (typeof item === 'string') {
      const problem = textProblem(item);
      if (problem) return `${place(path)} ${problem}`;
    } else if (typeof item === 'number') {
      if (!Number.isFinite(item)) return `${place(path)} is a number out of range`;
    } else if (typeof item === 'object' && item !== null) {
      if (depth >= MAX_JSON_DEPTH) return `the document is nested deeper than ${MAX_JSON_DEPTH} levels`;
      for (const [key, child] of Object.entries(item)) {
        const problem = key === '__proto__' ? 'is a forbidden member name' : textProblem(key);
        if (problem) return `a member name in ${place(path)} ${problem}`;
        stack.push({ value: child, path: path ? `${path}.${key}` : key, depth: depth + 1 });
      }
    }
  }
  return undefined;
}

const textProblem = (text: string): string | undefined =>
  text.includes('\u0000') ? 'contains U+0000' : LONE_SURROGATE.test(text) ? 'contains half of a surrogate pair' : undefined;

const place = (path: string): string => (path ? `"${maskCredentials(path).slice(0, 120)}"` : 'the document');
