import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { type Passport, WopError } from '@isthmus/protocol';
import { Directory, type KnownKey } from './directory.js';
import { KeyActivity } from './key-activity.js';
import { parseKey } from './keys.js';
import { PassportIssuer } from './passport-issuer.js';
import { SecretCheck } from './secret-check.js';

/** Who holds this key. No answer repeats the token, and only who has proved to hold a key learns what became of it. */
@Injectable()
export class Authenticator {
  constructor(
    private readonly directory: Directory,
    private readonly secrets: SecretCheck,
    private readonly passports: PassportIssuer,
    private readonly activity: KeyActivity,
    private readonly clock: Clock,
  ) {}

  async authenticate(token: string): Promise<Passport> {
    const key = parseKey(token);
    if (!key) throw unauthenticated();
    const known = await this.directory.key(key.keyId);
    const isHolder = await this.secrets.isHolder(token, key.secret, known);
    if (!known || !isHolder) {
      this.activity.refused(known ? 'secret-wrong' : 'unknown', known);
      throw unauthenticated();
    }
    this.#mustBeGood(known);
    this.activity.used(known);
    const { tenant, workspace, principal, scopes, epoch, keyId } = known;
    return this.passports.issue({ tenant, workspace, principal, kind: 'principal', scopes, epoch, credentialId: keyId });
  }

  #mustBeGood(known: KnownKey): void {
    if (known.revokedAt !== undefined) {
      this.activity.refused('revoked', known);
      throw new WopError('key_revoked', 'The API key was revoked.');
    }
    if (known.isDisabled) {
      this.activity.refused('principal-disabled', known);
      throw new WopError('key_revoked', 'The holder of the API key is disabled.');
    }
    if (known.expiresAt !== undefined && known.expiresAt <= this.clock.now()) {
      this.activity.refused('expired', known);
      throw new WopError('key_expired', 'The API key has expired.');
    }
  }
}

/** One answer for every token that proves nothing: it tells no key id from another. */
const unauthenticated = (): WopError => new WopError('unauthenticated', 'The credential is not valid.');
