import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { Db, type Prisma } from '@isthmus/db';
import type { JsonObject } from '@isthmus/protocol';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type CryptoKey, type JWK } from 'jose';

/** The slot of the key that signs. One per host: the first replica makes it, every other one finds it. */
const SIGNING_SLOT = 1;

export type SigningKey = { readonly kid: string; readonly key: CryptoKey };

/** The keys that sign passports, kept in Postgres so that replicas and restarts share them. */
@Injectable()
export class SigningKeys {
  #signing: Promise<SigningKey> | undefined;

  constructor(
    private readonly db: Db,
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
    const rows = await this.db.signingKey.findMany({ select: { kid: true, publicJwk: true }, orderBy: { slot: 'asc' } });
    return rows.map(({ kid, publicJwk }) => ({ ...(publicJwk as JsonObject), kid, alg: 'EdDSA', use: 'sig' }));
  }

  async #load(): Promise<SigningKey> {
    const stored = (await this.#stored()) ?? (await this.#create());
    const key = await importJWK(stored.privateJwk as JWK, 'EdDSA');
    if (key instanceof Uint8Array) throw new Error('The signing key is not an asymmetric key.');
    return { kid: stored.kid, key };
  }

  #stored() {
    return this.db.signingKey.findUnique({ where: { slot: SIGNING_SLOT }, select: { kid: true, privateJwk: true } });
  }

  async #create() {
    const pair = await generateKeyPair('EdDSA', { extractable: true });
    const publicJwk = await exportJWK(pair.publicKey);
    const privateJwk = await exportJWK(pair.privateKey);
    const kid = await calculateJwkThumbprint(publicJwk);
    // Replicas that start together all try; the one that commits first has made the key of all.
    await this.db.signingKey.createMany({
      data: [{ kid, slot: SIGNING_SLOT, publicJwk: plain(publicJwk), privateJwk: plain(privateJwk), createdAt: this.clock.date() }],
      skipDuplicates: true,
    });
    const stored = await this.#stored();
    if (!stored) throw new Error('The signing key was not stored.');
    return stored;
  }
}

const plain = (jwk: JWK): Prisma.InputJsonObject => ({ ...jwk }) as Prisma.InputJsonObject;
