import { createHash } from 'node:crypto';
import { type Json, type JsonObject, looksLikeCredential } from '@isthmus/protocol';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { LRUCache } from 'lru-cache';
import { RE2JS } from 're2js';

/** Compiling is code generation, and the code runs in everybody's process: what a tenant wrote has bounds. */
const MAX_SCHEMA_BYTES = 256 * 1024;
const MAX_KEPT = 500;

/** What is wrong with a value, and where. Never the value itself, nor a member name that looks like one. */
export type SchemaProblem = { readonly path: string; readonly message: string };

type Compiled = ValidateFunction | 'unusable';
const compiled = new LRUCache<string, Compiled>({ max: MAX_KEPT });
const texts = new WeakMap<JsonObject, { readonly hash: string; readonly text: string }>();

/**
 * Checks `value` against a JSON Schema 2020-12, whatever dialect it names. References to other documents are never fetched:
 * such a schema is unusable, as is one that cannot be compiled. (spec/mcp.md §1.9)
 * @returns undefined when it fits
 */
export function schemaProblem(schema: JsonObject, value: Json): SchemaProblem | 'unusable' | undefined {
  const validate = compile(schema);
  if (validate === 'unusable') return 'unusable';
  if (validate(value)) return undefined;
  const [error] = validate.errors ?? [];
  return error ? toProblem(error) : { path: '', message: 'does not fit the schema' };
}

/** Can values be checked against it at all? Asked when a schema is registered, so that nobody meets a useless one later. */
export const isUsableSchema = (schema: JsonObject): boolean => compile(schema) !== 'unusable';

function compile(schema: JsonObject): Compiled {
  const { hash, text } = textOf(schema);
  const known = compiled.get(hash);
  if (known) return known;
  const made = text.length > MAX_SCHEMA_BYTES ? 'unusable' : attempt(schema, text);
  compiled.set(hash, made);
  return made;
}

function textOf(schema: JsonObject): { hash: string; text: string } {
  const known = texts.get(schema);
  if (known) return known;
  const text = JSON.stringify(schema);
  const made = { hash: createHash('sha256').update(text).digest('base64'), text };
  texts.set(schema, made);
  return made;
}

function attempt({ $schema: _, ...schema }: JsonObject, text: string): Compiled {
  try {
    // Ajv remembers every `$id`, also below the root: what one schema means must not hang on what others have named.
    const validate = (text.includes('"$id"') ? newAjv() : sharedAjv()).compile(schema);
    // An `$async` schema answers with a promise, which is truthy whatever it comes to.
    return '$async' in validate ? 'unusable' : validate;
  } catch {
    return 'unusable';
  }
}

let shared: { readonly ajv: Ajv2020; uses: number } | undefined;
/** Making an Ajv costs ten times what compiling a schema does; keeping one for ever would keep every schema it ever saw. */
function sharedAjv(): Ajv2020 {
  if (!shared || shared.uses >= MAX_KEPT) shared = { ajv: newAjv(), uses: 0 };
  shared.uses++;
  return shared.ajv;
}

// RE2 matches in linear time: a tenant's pattern must not stop the process that other tenants use.
const linear = Object.assign((pattern: string) => RE2JS.compile(pattern), { code: 'linear' });

const newAjv = (): Ajv2020 =>
  formats.default(new Ajv2020({ strict: false, addUsedSchema: false, logger: false, code: { regExp: linear as never } })) as Ajv2020;

function toProblem({ instancePath, message, keyword, params }: ErrorObject): SchemaProblem {
  const path = instancePath.split('/').slice(1).map(safeName);
  if (keyword === 'required') return { path: [...path, safeName(String(params['missingProperty']))].join('.'), message: 'is required' };
  if (keyword === 'additionalProperties' || keyword === 'unevaluatedProperties')
    return { path: path.join('.'), message: 'has a member that the schema does not know' };
  return { path: path.join('.'), message: message ?? 'does not fit the schema' };
}

/** Names in a path may come from the client, who may have put a secret in the wrong place. */
const safeName = (name: string): string =>
  /^([A-Za-z_][A-Za-z0-9_.-]{0,39}|\d{1,6})$/.test(name) && !looksLikeCredential(name) ? name : '*';
