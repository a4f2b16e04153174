import type { Postgres } from '@isthmus/db';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK } from 'jose';

/** What each key of the host signs. One key per slot: the first replica makes it, every other one finds it. */
export const SLOTS = { passports: 1, audit: 2 } as const;
export type Slot = (typeof SLOTS)[keyof typeof SLOTS];

export type StoredKey = { readonly kid: string; readonly publicJwk: JWK; readonly privateJwk: JWK };

/** The Ed25519 key of a slot, kept in Postgres so that replicas and restarts share it. */
export async function keyInSlot(db: Postgres, slot: Slot, at: Date): Promise<StoredKey> {
  return (await stored(db, slot)) ?? (await create(db, slot, at));
}

async function stored(db: Postgres, slot: Slot): Promise<StoredKey | undefined> {
  const [row] = await db.rows<StoredKey>`
    select kid, public_jwk as "publicJwk", private_jwk as "privateJwk" from authz.signing_keys where slot = ${slot}`;
  return row;
}

async function create(db: Postgres, slot: Slot, at: Date): Promise<StoredKey> {
  const pair = await generateKeyPair('EdDSA', { extractable: true });
  const publicJwk = await exportJWK(pair.publicKey);
  const privateJwk = await exportJWK(pair.privateKey);
  const kid = await calculateJwkThumbprint(publicJwk);
  // Replicas that start together all try; the one that commits first has made the key of all.
  await db.run`
    insert into authz.signing_keys (kid, slot, public_jwk, private_jwk, created_at)
    values (${kid}, ${slot}, ${JSON.stringify(publicJwk)}, ${JSON.stringify(privateJwk)}, ${at}) on conflict do nothing`;
  const key = await stored(db, slot);
  if (!key) throw new Error('The signing key was not stored.');
  return key;
}
