import { isRunId, jsonProblem, type Route, validationError, WopError } from '@isthmus/protocol';
import { idempotencyOf } from './idempotency.js';
import type { Asked } from './route.decorator.js';

type Given = { readonly params: unknown; readonly query: unknown; readonly body: unknown; readonly idempotencyKey: string | undefined };

/** The request as its route's schemas have it, or the 4xx that says what is wrong with it. (style: parse at the door, trust inside) */
export function ask(route: Route, given: Given): Asked {
  const params = parseParams(route, given.params);
  const query = route.query && parse(route.query, 'query', storable(given.query, 'query'));
  const body = parseBody(route, given.body);
  const idempotency = route.idempotent && idempotencyOf(route, given.idempotencyKey, { params, body: given.body });
  return { params, query, body, ...(idempotency && { idempotency }) } as Asked;
}

/** A name that nothing of a tenant can have is the name of nothing: 404, as if it were free. Only who makes a thing learns the grammar. */
function parseParams(route: Route, given: unknown): unknown {
  if (!route.params) return undefined;
  const parsed = route.params.safeParse(given);
  if (!parsed.success) {
    if (route.holds === 'tenant') throw new WopError('not_found', 'There is no such thing, or not for this credential.');
    throw validationError(parsed.error, 'path');
  }
  const { runId } = parsed.data as { runId?: string };
  if (runId !== undefined && !isRunId(runId)) throw new WopError('not_found', 'There is no such run, or not for this credential.');
  return parsed.data;
}

function parseBody(route: Route, given: unknown): unknown {
  if (route.body) return parse(route.body, 'body', given);
  if (given !== undefined) throw new WopError('validation_error', 'This request has no body.');
  return undefined;
}

function parse(schema: NonNullable<Route['body']>, what: string, given: unknown): unknown {
  const parsed = schema.safeParse(given);
  if (!parsed.success) throw validationError(parsed.error, what);
  return parsed.data;
}

function storable(given: unknown, what: string): unknown {
  const problem = jsonProblem(given);
  if (problem) throw new WopError('validation_error', `The ${what} cannot be taken: ${problem}.`);
  return given;
}
