import type { Caller } from './owner.js';

/** A passport is a compact JWS (EdDSA) over the caller; only authz signs, every service verifies. */
export const PASSPORT = { issuer: 'isthmus-authz', audience: 'isthmus', algorithm: 'EdDSA', lifetimeMs: 60_000 } as const;

/** What authz answers about a credential. */
export type Passport = { readonly token: string; readonly caller: Caller; readonly expiresInMs: number };
