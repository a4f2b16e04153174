import { z } from 'zod';
import { Scope } from './scopes.js';

const Id = z.string().min(1).max(128);

/** Who a run, workflow or mount belongs to. Opaque ids, never an e-mail or a secret. (RFC 0048) */
export const Owner = z.strictObject({ tenant: Id, workspace: Id.optional(), principal: Id.optional() });
export type Owner = z.infer<typeof Owner>;

/**
 * Who is asking, as authz found out from the credential: tenant, workspace and principal are never taken from a body,
 * a header hint or `_meta`. `kind` is `service` for work that no person asked for at this moment (a watcher, a sweep).
 */
export const Caller = z.strictObject({
  tenant: Id,
  workspace: Id,
  principal: Id,
  kind: z.enum(['principal', 'service']),
  scopes: z.array(Scope).readonly(),
  /** Revocation epoch of the tenant when the passport was issued. */
  epoch: z.int().min(0),
  /** Opaque id of the credential that was used, for the audit log; never key material. */
  credentialId: z.string().optional(),
});
export type Caller = z.infer<typeof Caller>;

/** The owner that a thing gets which `caller` makes. */
export const ownerOf = (caller: Caller): Required<Owner> => ({
  tenant: caller.tenant,
  workspace: caller.workspace,
  principal: caller.principal,
});
