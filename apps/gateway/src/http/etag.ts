import { createHash } from 'node:crypto';

/** A strong validator: other bytes, another tag. `place` is what people read in it, such as how far a log has come. */
export const etagOf = (bytes: string, place?: number): string =>
  `"${place === undefined ? '' : `${place}-`}${createHash('sha256').update(bytes).digest('base64url')}"`;

/** Weakly, as If-None-Match compares. (RFC 9110 §13.1.2) */
export const matches = (ifNoneMatch: string | undefined, etag: string): boolean =>
  (ifNoneMatch ?? '').split(',').some((part) => part.trim() === '*' || part.trim().replace(/^W\//, '') === etag);
