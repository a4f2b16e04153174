import { createHash } from 'node:crypto';
import type { Idempotency, JsonObject } from '@isthmus/protocol';
import type { Call } from './call.js';
import { digestOf } from './request-state.js';
import { invalidParams } from './rpc.js';

const META_KEY = 'dev.isthmus/idempotencyKey';
const MAX_LENGTH = 255;

/** The key of a call, by header or by `_meta`, for clients that cannot set the one or the other. (rulings "MCP mount") */
export function idempotencyOf(
  { headers, meta, mount }: Pick<Call, 'headers' | 'meta' | 'mount'>,
  tool: string,
  given: JsonObject,
): Idempotency | undefined {
  const key = headers.get('idempotency-key') ?? meta[META_KEY];
  if (key === undefined) return undefined;
  if (typeof key !== 'string' || key.length === 0 || key.length > MAX_LENGTH) {
    throw invalidParams(`The idempotency key must be a text of 1 to ${MAX_LENGTH} characters.`, { reason: 'idempotency_key_invalid' });
  }
  return { endpoint: `mcp:tools/call:${mount}:${tool}`, keyHash: createHash('sha256').update(key).digest('hex'), digest: digestOf(given) };
}
