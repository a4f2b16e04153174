import { createHmac, randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { BELLS } from '@isthmus/protocol';
import { BoundedQueue } from './bounded-queue.js';
import { recent } from './recent.js';
import { SecretHasher } from './secret-hasher.js';

const MATCH_MS = 30_000;
const MISMATCH_MS = 5_000;

type Kept = { readonly tenant: string; readonly secretHash: string };

/**
 * Does this secret belong to that hash. A secret that is wrong and a key that nobody has cost the same: both are hashed. What
 * was found is remembered for a moment, under a keyed hash of the token and only for the hash it was compared with; whether the
 * key is still good is read from the database each time, so nothing remembered here outlives a revocation.
 */
@Injectable()
export class SecretCheck {
  readonly #queue = new BoundedQueue(2, 64);
  readonly #processKey = randomBytes(32);
  readonly #matches: ReturnType<typeof recent<Kept>>;
  /** Apart from the matches, so that a flood of wrong keys cannot push the good ones out. */
  readonly #mismatches: ReturnType<typeof recent<string>>;
  readonly #running = new Map<string, Promise<boolean>>();
  #nobodysHash: Promise<string> | undefined;

  constructor(
    private readonly hasher: SecretHasher,
    clock: Clock,
  ) {
    this.#matches = recent(clock, MATCH_MS);
    this.#mismatches = recent(clock, MISMATCH_MS);
  }

  /** @param known what is stored for the key's id; undefined when there is no such key */
  async isHolder(token: string, secret: string, known: Kept | undefined): Promise<boolean> {
    const secretHash = known?.secretHash ?? (await this.nobodysHash());
    const digest = createHmac('sha256', this.#processKey).update(token).digest('base64url');
    if (known && this.#matches.get(digest)?.secretHash === secretHash) return true;
    if (this.#mismatches.get(digest) === secretHash) return false;

    // Many requests with one new key are one verification.
    const running = this.#running.get(digest);
    if (running) return running;
    const check = this.#queue.run(() => this.hasher.verify(secretHash, secret)).finally(() => this.#running.delete(digest));
    this.#running.set(digest, check);
    const isHolder = (await check) && known !== undefined;
    if (isHolder) this.#matches.set(digest, { tenant: known.tenant, secretHash });
    else this.#mismatches.set(digest, secretHash);
    return isHolder;
  }

  /** Forgets the tenant that a `revoked` bell names. */
  forget(bell: string): void {
    for (const [digest, { tenant }] of this.#matches.entries()) {
      if (BELLS.revoked.subject(tenant) === bell) this.#matches.delete(digest);
    }
  }

  /** The hash of a secret that nobody knows, made with the cost of all others. */
  nobodysHash(): Promise<string> {
    this.#nobodysHash ??= this.hasher.hash(randomBytes(32).toString('base64url'));
    return this.#nobodysHash;
  }
}
