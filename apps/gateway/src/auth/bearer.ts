import { WopError } from '@isthmus/protocol';

const MAX_TOKEN_LENGTH = 4_096;
/** (RFC 6750 §2.1) */
const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

/** The token of an Authorization header. Refusals never repeat it. (authz.md §2.1) */
export function bearerToken(authorization: string | undefined): string {
  if (authorization === undefined) throw new WopError('unauthenticated', 'This needs a credential: Authorization: Bearer <key>.');
  const token = authorization.length <= MAX_TOKEN_LENGTH + 16 ? BEARER.exec(authorization)?.[1] : undefined;
  if (!token || token.length > MAX_TOKEN_LENGTH)
    throw new WopError('unauthenticated', 'The credential is not a bearer token this host issued.');
  return token;
}
