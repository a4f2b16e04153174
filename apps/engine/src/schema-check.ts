import type { JsonObject } from '@isthmus/protocol';
import { WopError } from '@isthmus/protocol';
import { isUsableSchema, schemaProblem } from '@isthmus/schemas';

/** @throws WopError `validation_error` when nothing could ever be checked against it */
export function checkSchema(schema: JsonObject, what: string): void {
  if (isUsableSchema(schema)) return;
  throw new WopError(
    'validation_error',
    `The ${what} is not a JSON Schema (2020-12) that can be used here. References must point into the schema itself; patterns are RE2.`,
  );
}

/** `configurable` must satisfy the workflow's schema; an absent one counts as `{}`. (run-options.md) */
export function checkConfigurable(schema: JsonObject | undefined, configurable: JsonObject = {}): void {
  const problem = schema && schemaProblem(schema, configurable);
  if (!problem) return;
  const { path, message } = problem === 'unusable' ? { path: '', message: 'the schema cannot be used' } : problem;
  const where = path ? `configurable.${path}` : 'configurable';
  throw new WopError('validation_error', `configurable does not satisfy the workflow's configurableSchema: "${where}" ${message}.`, {
    issues: [{ path: where, message }],
  });
}
