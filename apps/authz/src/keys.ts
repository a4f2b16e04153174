import { createHash, randomBytes } from 'node:crypto';

/** An API key is `isk_<key id>_<secret><checksum>`: safe in URLs and headers. The id names it, the secret proves it. */
const KEY = /^(isk_([0-9a-f]{24})_([A-Za-z0-9_-]{43}))([A-Za-z0-9_-]{6})$/;

export type Key = { readonly keyId: string; readonly secret: string };

/** A new key with a secret of 256 bits. It is shown once; what is stored is its hash. */
export function mintKey(): string {
  const body = `isk_${randomBytes(12).toString('hex')}_${randomBytes(32).toString('base64url')}`;
  return body + checksum(body);
}

/** The parts of a key, or undefined for anything that no one of us minted: such a token costs no look-up and no hashing. */
export function parseKey(token: string): Key | undefined {
  const [, body, keyId, secret, check] = KEY.exec(token) ?? [];
  if (body === undefined || keyId === undefined || secret === undefined || check !== checksum(body)) return undefined;
  return { keyId, secret };
}

/** Not a defence: whoever knows the format can compute it. It drops typing errors, truncated keys and keys of others. */
const checksum = (body: string): string => createHash('sha256').update(body).digest('base64url').slice(0, 6);
