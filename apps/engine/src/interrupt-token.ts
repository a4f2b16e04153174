import { createHmac, timingSafeEqual } from 'node:crypto';
import { WopError } from '@isthmus/protocol';
import { z } from 'zod';

/** How long a token lives at most, and never past its interrupt's own deadline. (execution §3.3) */
export const TOKEN_LIFE_MS = 30 * 60_000;

const Claims = z.strictObject({
  tenant: z.string(),
  workspace: z.string(),
  runId: z.string(),
  nodeId: z.string(),
  interruptId: z.string(),
  /** Milliseconds since 1970. */
  expiresAt: z.number(),
  intent: z.enum(['resolve', 'inspect']),
});
export type TokenClaims = z.infer<typeof Claims>;

const mac = (key: Buffer, payload: string): Buffer => createHmac('sha256', key).update(payload).digest();

/** base64url(JSON) "." base64url(HMAC-SHA256), unguessable and bound to one interrupt. (execution §3.3) */
export function mintToken(key: Buffer, claims: TokenClaims): string {
  const payload = Buffer.from(JSON.stringify(claims)).toString('base64url');
  return `${payload}.${mac(key, payload).toString('base64url')}`;
}

/** @throws WopError `interrupt_token_invalid` for what was not minted here, `interrupt_expired` when its time has passed */
export function readToken(key: Buffer, token: string, now: number): TokenClaims {
  const [payload = '', signature = '', ...rest] = token.split('.');
  const given = Buffer.from(signature, 'base64url');
  const own = mac(key, payload);
  const invalid = new WopError('interrupt_token_invalid', 'There is no such interrupt token.');
  if (rest.length > 0 || given.length !== own.length || !timingSafeEqual(given, own)) throw invalid;
  const claims = Claims.safeParse(JSON.parse(Buffer.from(payload, 'base64url').toString()));
  if (!claims.success) throw invalid;
  if (now >= claims.data.expiresAt) throw new WopError('interrupt_expired', 'The time of this interrupt token has passed.');
  return claims.data;
}
