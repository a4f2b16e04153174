import { createHash } from 'node:crypto';
import type { Caller, Json, JsonObject } from '@isthmus/protocol';
import canonicalize from 'canonicalize';
import { EncryptJWT, jwtDecrypt } from 'jose';
import { z } from 'zod';
import type { StateKey } from './state-keys.js';

/** How long a client may think before its `requestState` is worth nothing. */
export const STATE_LIFETIME_MS = 10 * 60_000;

/** The request a state belongs to: only its repetition, by the same principal, may bring the state back. */
export type StateRequest = {
  readonly caller: Caller;
  readonly mount: string;
  readonly method: string;
  readonly name: string;
  readonly arguments: JsonObject;
};

/**
 * What the client hands back to us. `answer`: interrupts were asked about, so it is good for one answer each, which the engine
 * holds by resolving an interrupt once (traps.md 9). `wait`: the run was merely slow; good as often as the client likes.
 */
const Continuation = z.strictObject({
  kind: z.enum(['answer', 'wait']),
  runId: z.string(),
  interruptIds: z.array(z.string()),
  /** The call carried an idempotency key: its run goes on without the client. */
  keyed: z.boolean(),
});
export type Continuation = z.infer<typeof Continuation>;

export type Opened = { readonly is: 'ours'; readonly continuation: Continuation } | { readonly is: 'refused'; readonly reason: string };

const HEAD = { alg: 'dir', enc: 'A256GCM' } as const;

/** Seals what is needed to go on: encrypted, authenticated, bound to the request and its principal. (spec/authz.md §7.3) */
export function sealState(key: StateKey, request: StateRequest, continuation: Continuation, at: number): Promise<string> {
  return new EncryptJWT({ ...continuation, for: bindingOf(request) })
    .setProtectedHeader({ ...HEAD, kid: key.kid })
    .setExpirationTime(Math.floor((at + STATE_LIFETIME_MS) / 1_000))
    .encrypt(key.secret);
}

/** @returns the reason of a refusal for the audit log; the client is told nothing but that it was refused */
export async function openState(
  keyOf: (kid: string) => Promise<StateKey | undefined>,
  request: StateRequest,
  state: Json,
  at: number,
): Promise<Opened> {
  if (typeof state !== 'string' || !isCanonical(state)) return { is: 'refused', reason: 'request-state-not-ours' };
  const key = await keyOf(kidOf(state));
  if (!key) return { is: 'refused', reason: 'request-state-not-ours' };
  try {
    const { payload } = await jwtDecrypt(state, key.secret, {
      keyManagementAlgorithms: [HEAD.alg],
      contentEncryptionAlgorithms: [HEAD.enc],
      currentDate: new Date(at),
    });
    const { for: binding, exp: _, ...rest } = payload;
    if (binding !== bindingOf(request)) return { is: 'refused', reason: 'request-state-of-another-request' };
    return { is: 'ours', continuation: Continuation.parse(rest) };
  } catch (error) {
    return {
      is: 'refused',
      reason: (error as { code?: string }).code === 'ERR_JWT_EXPIRED' ? 'request-state-expired' : 'request-state-altered',
    };
  }
}

/** One value for who asks and what: comparing it compares everything. */
const bindingOf = ({ caller, mount, method, name, arguments: given }: StateRequest): string =>
  digestOf([caller.tenant, caller.workspace, caller.principal, mount, method, name, given]);

/** SHA-256 over the canonical form. (RFC 8785) */
export const digestOf = (value: Json): string =>
  createHash('sha256')
    .update(canonicalize(value) ?? '')
    .digest('base64url');

/**
 * Is this one of the texts that a compact JWE can have? Decoders take spare bits and stray characters in base64url, so that
 * several texts would mean one state; only the one we wrote is ours.
 */
function isCanonical(state: string): boolean {
  const parts = state.length <= MAX_STATE ? state.split('.') : [];
  return parts.length === 5 && parts[1] === '' && parts.every((part) => Buffer.from(part, 'base64url').toString('base64url') === part);
}
const MAX_STATE = 8_192;

function kidOf(state: string): string {
  try {
    const header: unknown = JSON.parse(Buffer.from(state.slice(0, state.indexOf('.')), 'base64url').toString());
    const kid = (header as { kid?: unknown } | null)?.kid;
    return typeof kid === 'string' ? kid : '';
  } catch {
    return '';
  }
}
