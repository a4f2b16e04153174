import { createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject, sign, verify } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { Postgres } from '@isthmus/db';
import { keyInSlot, SLOTS } from './key-slot.js';

/** Signs and checks what a checkpoint says. Ed25519 over the 32 bytes of the root, as base64. (RFC 0218) */
export type CheckpointKey = {
  sign(merkleRoot: string): string;
  isSigned(merkleRoot: string, signature: string): boolean;
  /** SubjectPublicKeyInfo, base64: as discovery advertises it. */
  readonly publicKey: string;
};

/** The key of the audit log's checkpoints. It signs nothing else, and nothing else signs them. */
@Injectable()
export class AuditSigner {
  #key: Promise<CheckpointKey> | undefined;

  constructor(
    private readonly db: Postgres,
    private readonly clock: Clock,
  ) {}

  /** Asked again after a failure. */
  key(): Promise<CheckpointKey> {
    this.#key ??= this.#load().catch((error: unknown) => {
      this.#key = undefined;
      throw error;
    });
    return this.#key;
  }

  async #load(): Promise<CheckpointKey> {
    const { privateJwk } = await keyInSlot(this.db, SLOTS.audit, this.clock.date());
    return checkpointKey(createPrivateKey({ key: privateJwk as JsonWebKey, format: 'jwk' }));
  }
}

export function checkpointKey(privateKey: KeyObject): CheckpointKey {
  const publicKey = createPublicKey(privateKey);
  const bytes = (root: string): Buffer => Buffer.from(root, 'hex');
  return {
    sign: (root) => sign(null, bytes(root), privateKey).toString('base64'),
    isSigned: (root, signature) => bytes(root).length === 32 && verify(null, bytes(root), publicKey, Buffer.from(signature, 'base64')),
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
  };
}
