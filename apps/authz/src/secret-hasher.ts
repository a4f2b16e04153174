import { Injectable } from '@nestjs/common';
import { hash, verify } from '@node-rs/argon2';

/** How a secret is kept. A port, so that tests can hold a verification open. */
export abstract class SecretHasher {
  abstract hash(secret: string): Promise<string>;
  abstract verify(hashed: string, secret: string): Promise<boolean>;
}

/** argon2id (the library's default algorithm) with OWASP's smallest advised cost: about 30 ms and 19 MiB each, off the event loop. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

@Injectable()
export class Argon2Hasher extends SecretHasher {
  override hash(secret: string): Promise<string> {
    return hash(secret, COST);
  }
  override verify(hashed: string, secret: string): Promise<boolean> {
    return verify(hashed, secret);
  }
}
