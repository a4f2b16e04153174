import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { Postgres } from '@isthmus/db';
import type { JsonObject } from '@isthmus/protocol';
import { importJWK, type CryptoKey } from 'jose';
import { keyInSlot, SLOTS } from './key-slot.js';

export type SigningKey = { readonly kid: string; readonly key: CryptoKey };

/** The key that signs passports. */
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

  /** Public halves of the keys that passports may be signed with, as JWKs with `kid`. Keys for other things are not among them. */
  async publicKeys(): Promise<JsonObject[]> {
    await this.signing();
    const rows = await this.db.rows<{ kid: string; publicJwk: JsonObject }>`
      select kid, public_jwk as "publicJwk" from authz.signing_keys where slot = ${SLOTS.passports}`;
    return rows.map(({ kid, publicJwk }) => ({ ...publicJwk, kid, alg: 'EdDSA', use: 'sig' }));
  }

  async #load(): Promise<SigningKey> {
    const { kid, privateJwk } = await keyInSlot(this.db, SLOTS.passports, this.clock.date());
    const key = await importJWK(privateJwk, 'EdDSA');
    if (key instanceof Uint8Array) throw new Error('The signing key is not an asymmetric key.');
    return { kid, key };
  }
}
