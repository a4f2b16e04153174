import type { JsonObject } from '@isthmus/protocol';
import { WopError } from '@isthmus/protocol';
import { type ErrorObject, Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { LRUCache } from 'lru-cache';
import { sha256 } from './driver/values.js';

/** Authors' schemas: lenient dialect, no network. Compiled once per schema (1 ms each, 13 ms with a new Ajv). */
const ajv = new Ajv2020({ strict: false, allErrors: false, addUsedSchema: false });
(addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
const compiled = new LRUCache<string, ValidateFunction>({ max: 500 });

/** @throws WopError `validation_error` when the schema itself does not compile */
export function validator(schema: JsonObject, what: string): ValidateFunction {
  const key = sha256(JSON.stringify(schema));
  const known = compiled.get(key);
  if (known) return known;
  try {
    const { $id: _, ...anonymous } = schema;
    const made = ajv.compile(anonymous);
    compiled.set(key, made);
    return made;
  } catch {
    throw new WopError(
      'validation_error',
      `The ${what} is not a JSON Schema (2020-12) that can be used here. References must point into the schema itself.`,
    );
  }
}

/** `configurable` must satisfy the workflow's schema; an absent one counts as `{}`. (run-options.md) */
export function checkConfigurable(schema: JsonObject | undefined, configurable: unknown): void {
  if (!schema) return;
  const validate = validator(schema, 'configurableSchema');
  if (validate(configurable ?? {})) return;
  const issues = (validate.errors ?? []).slice(0, 10).map(issueOf);
  throw new WopError(
    'validation_error',
    `configurable does not satisfy the workflow's configurableSchema: ${issues[0]?.message ?? 'it is refused'}.`,
    { issues },
  );
}

/** Where and what, never the value. */
const issueOf = ({ instancePath, message, keyword }: ErrorObject): { path: string; message: string } => ({
  path: `configurable${instancePath.replace(/\//g, '.')}`,
  message: message ?? keyword,
});
