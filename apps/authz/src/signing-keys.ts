import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { Postgres } from '@isthmus/db';
import type { JsonObject } from '@isthmus/protocol';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type CryptoKey, type JWK } from 'jose';

/** The slot of the key that signs. One per host: the first replica makes it, every other one finds it. */
const SIGNING_SLOT = 1;

type StoredKey = { readonly kid: string; readonly privateJwk: JWK };

export type SigningKey = { readonly kid: string; readonly key: CryptoKey };

/** The keys that sign passports, kept in Postgres so that replicas and restarts share them. */
@Injectable()
export class SigningKeys {
  #signing: Promise<SigningKey> | undefined;

  constructor(
    private readonly db: Postgres,
    private readonly clock: Clock,
  ) {}

  /** The key to sign with; asked again after a failure. */
  signing(): Promise<SigningKey> {
    this.#signing ??= this.#load().catch((error: unknown) => {
      this.#signing = undefined;
      throw error;
    });
    return this.#signing;
  }

  /** Public halves of all keys, as JWKs with `kid`. */
  async publicKeys(): Promise<JsonObject[]> {
    await this.signing();
    const rows = await this.db.rows<{
      kid: string;
      publicJwk: JsonObject;
    }>`select kid, public_jwk as "publicJwk" from authz.signing_keys order by slot`;
    return rows.map(({ kid, publicJwk }) => ({ ...publicJwk, kid, alg: 'EdDSA', use: 'sig' }));
  }

  async #load(): Promise<SigningKey> {
    const stored = (await this.#stored()) ?? (await this.#create());
    const key = await importJWK(stored.privateJwk, 'EdDSA');
    if (key instanceof Uint8Array) throw new Error('The signing key is not an asymmetric key.');
    return { kid: stored.kid, key };
  }

  async #stored(): Promise<StoredKey | undefined> {
    const [row] = await this.db
      .rows<StoredKey>`select kid, private_jwk as "privateJwk" from authz.signing_keys where slot = ${SIGNING_SLOT}`;
    return row;
  }

  async #create(): Promise<StoredKey> {
    const pair = await generateKeyPair('EdDSA', { extractable: true });
    const publicJwk = await exportJWK(pair.publicKey);
    const privateJwk = await exportJWK(pair.privateKey);
    const kid = await calculateJwkThumbprint(publicJwk);
    // Replicas that start together all try; the one that commits first has made the key of all.
    await this.db.run`
      insert into authz.signing_keys (kid, slot, public_jwk, private_jwk, created_at)
      values (${kid}, ${SIGNING_SLOT}, ${JSON.stringify(publicJwk)}, ${JSON.stringify(privateJwk)}, ${this.clock.date()}) on conflict do nothing`;
    const stored = await this.#stored();
    if (!stored) throw new Error('The signing key was not stored.');
    return stored;
  }
}
