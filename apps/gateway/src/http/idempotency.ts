import { createHash } from 'node:crypto';
import { type Idempotency, type Route, WopError } from '@isthmus/protocol';
import canonicalize from 'canonicalize';

const MAX_KEY_LENGTH = 255;
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * What a request with an `Idempotency-Key` is recognised by: the routed template, the hashed key, and a digest over path
 * parameters and body in canonical form, so that neither member order nor a second run with the same key confuses it. The
 * key itself goes no further. (idempotency.md 1.7 layer 1)
 */
export function idempotencyOf(
  route: Pick<Route, 'method' | 'path'>,
  key: string | undefined,
  asked: { params: unknown; body: unknown },
): Idempotency | undefined {
  if (key === undefined) return undefined;
  if (key.length === 0 || key.length > MAX_KEY_LENGTH) {
    throw new WopError('idempotency_key_invalid', `Idempotency-Key must be 1 to ${MAX_KEY_LENGTH} characters.`);
  }
  return {
    endpoint: `${route.method} ${route.path}`,
    keyHash: sha256(`isthmus:idempotency-key:v1:${key}`),
    digest: sha256(canonicalize({ params: asked.params, body: asked.body ?? null }) ?? ''),
  };
}
