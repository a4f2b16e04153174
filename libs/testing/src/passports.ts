import { authz, type Caller, PASSPORT } from '@isthmus/protocol';
import type { NatsConnection } from '@nats-io/transport-node';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { answer } from './answer.js';
import { callerOf } from './caller.js';

export type PassportIssuer = {
  /** A passport of `caller`, as authz signs them. `expiresInMs` may be negative; `now` is for tests with a clock of their own. */
  passport(caller?: Caller, options?: { expiresInMs?: number; now?: number }): Promise<string>;
  /** Rights of `tenant` changed: passports with an older epoch are refused once it is known. @returns the new epoch */
  revoke(tenant: string): number;
  stop(): void;
};

/**
 * Signs passports with a fresh key and, given a connection, answers what every service asks of authz: the public key, and whose
 * rights have changed.
 */
export async function passportIssuer(connection?: NatsConnection): Promise<PassportIssuer> {
  const kid = 'test';
  const { privateKey, publicKey } = await generateKeyPair(PASSPORT.algorithm, { crv: 'Ed25519' });
  const jwk = { ...(await exportJWK(publicKey)), kid, alg: PASSPORT.algorithm, use: 'sig' };
  const revoked = new Map<string, number>();
  let epoch = 0;

  const stops = connection
    ? [
        answer(connection, authz.publicKeys, () => ({ keys: [jwk] })),
        answer(connection, authz.revocationsSince, ({ epoch: since }) => ({
          epoch,
          tenants: [...revoked].filter(([, at]) => since !== undefined && at > since).map(([tenant, at]) => ({ tenant, epoch: at })),
        })),
      ]
    : [];
  await connection?.flush();

  return {
    passport: (caller = callerOf(), { expiresInMs = PASSPORT.lifetimeMs, now = Date.now() } = {}) =>
      new SignJWT({ caller })
        .setProtectedHeader({ alg: PASSPORT.algorithm, kid })
        .setIssuer(PASSPORT.issuer)
        .setAudience(PASSPORT.audience)
        .setSubject(caller.principal)
        .setIssuedAt(Math.floor(now / 1_000))
        .setExpirationTime(Math.floor((now + expiresInMs) / 1_000))
        .sign(privateKey),
    revoke: (tenant) => {
      epoch += 1;
      revoked.set(tenant, epoch);
      return epoch;
    },
    stop: () => {
      for (const stop of stops) stop();
    },
  };
}
