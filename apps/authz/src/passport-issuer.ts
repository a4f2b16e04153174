import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { type Caller, PASSPORT, type Passport } from '@isthmus/protocol';
import { SignJWT } from 'jose';
import { recent } from './recent.js';
import { SigningKeys } from './signing-keys.js';

/** How long a passport is handed out again before a fresh one is signed. */
const REUSE_MS = 10_000;

type Issued = { readonly token: Promise<string>; readonly expiresAt: number };

/** Signs what authz found out about a caller. Scopes and epoch are part of the caller, so a changed right is another passport. */
@Injectable()
export class PassportIssuer {
  readonly #issued: ReturnType<typeof recent<Issued>>;

  constructor(
    private readonly keys: SigningKeys,
    private readonly clock: Clock,
  ) {
    this.#issued = recent(clock, REUSE_MS);
  }

  async issue(caller: Caller): Promise<Passport> {
    const name = JSON.stringify(caller);
    const issued = this.#issued.get(name) ?? this.#sign(name, caller);
    try {
      return { token: await issued.token, caller, expiresInMs: Math.max(0, issued.expiresAt - this.clock.now()) };
    } catch (error) {
      this.#issued.delete(name);
      throw error;
    }
  }

  #sign(name: string, caller: Caller): Issued {
    // A JWT counts whole seconds; what we promise is what it says.
    const now = Math.floor(this.clock.now() / 1_000);
    const end = now + PASSPORT.lifetimeMs / 1_000;
    const token = this.keys
      .signing()
      .then(({ kid, key }) =>
        new SignJWT({ caller })
          .setProtectedHeader({ alg: PASSPORT.algorithm, kid })
          .setIssuer(PASSPORT.issuer)
          .setAudience(PASSPORT.audience)
          .setIssuedAt(now)
          .setExpirationTime(end)
          .sign(key),
      );
    const issued = { token, expiresAt: end * 1_000 };
    this.#issued.set(name, issued);
    return issued;
  }
}
