import { z } from 'zod';
import { contract } from '../contract.js';
import { Description } from '../capabilities.js';
import { JsonObject } from '../json.js';
import { Caller } from '../owner.js';
import { Scope } from '../scopes.js';

const PassportOut = z.strictObject({ token: z.string(), caller: Caller, expiresInMs: z.int().min(0) });

/** (audit-verify-result.schema.json: closed, both lists always there) */
const AuditVerdict = z.strictObject({
  fromSeq: z.int().min(0),
  toSeq: z.int().min(0),
  chainValid: z.boolean(),
  checkpointsValid: z.boolean().optional(),
  checkpoints: z.array(
    z.strictObject({ checkpoint: z.string(), atSequence: z.int().min(0), merkleRoot: z.string(), signature: z.string() }),
  ),
  anomalies: z.array(z.strictObject({ atSeq: z.int().min(0), expectedPrevHash: z.string(), actualPrevHash: z.string() })),
});

/** Contracts of authz: who is asking, and may they. */
export const authz = {
  /** Who holds this credential. Errors: unauthenticated, key_expired, key_revoked, service_unavailable. */
  authenticate: contract('authz.caller.authenticate', {
    access: 'internal',
    input: z.strictObject({ credential: z.strictObject({ type: z.literal('bearer'), token: z.string().max(4_096) }) }),
    output: PassportOut,
  }),
  /**
   * A passport for work that goes on without the caller: an effect of a run that was parked (`for: principal`, with the
   * scopes the principal has now), or a watcher of the host (`for: service`, with the scopes it names).
   * Errors: forbidden when the principal is gone.
   */
  delegate: contract('authz.caller.delegate', {
    access: 'internal',
    input: z.discriminatedUnion('for', [
      z.strictObject({ for: z.literal('principal'), tenant: z.string(), workspace: z.string(), principal: z.string() }),
      z.strictObject({ for: z.literal('service'), service: z.string(), tenant: z.string(), workspace: z.string(), scopes: z.array(Scope) }),
    ]),
    output: PassportOut,
  }),
  /** Public halves of the passport keys, as JWKs with `kid`. */
  publicKeys: contract('authz.key.public', {
    access: 'internal',
    input: z.strictObject({}),
    output: z.strictObject({ keys: z.array(JsonObject) }),
  }),
  /**
   * Tenants whose keys, scopes or memberships changed after `epoch`. Asked every second by every service: passports of such
   * a tenant with an older epoch are refused from then on. `epoch` absent: just the present one.
   */
  revocationsSince: contract('authz.revocation.since', {
    access: 'internal',
    deadlineMs: 1_000,
    input: z.strictObject({ epoch: z.int().min(0).optional() }),
    output: z.strictObject({ epoch: z.int().min(0), tenants: z.array(z.strictObject({ tenant: z.string(), epoch: z.int().min(0) })) }),
  }),
  /** Appends to the audit chain of each entry's tenant (`tenant` absent: the host's chain). */
  recordAudit: contract('authz.audit.record', {
    access: 'internal',
    input: z.strictObject({
      entries: z
        .array(z.strictObject({ tenant: z.string().optional(), type: z.string(), at: z.string(), facts: JsonObject }))
        .min(1)
        .max(500),
    }),
    output: z.strictObject({ recorded: z.int() }),
  }),
  /**
   * Is the audit chain of the caller's tenant as it was written and as it was sealed, from `fromSeq` to `toSeq` (absent: to its
   * end). A chain that is too long for one answer is asked for in parts: `toSeq` of the answer says how far it went.
   * Errors: validation_error, with `details.maxToSeq` for a range that is too long. (auth-profiles.md, audit-log integrity §4)
   */
  verifyAudit: contract('authz.audit.verify', {
    access: ['audit:read'],
    deadlineMs: 30_000,
    input: z.strictObject({ fromSeq: z.int().min(0).optional(), toSeq: z.int().min(0).optional() }),
    output: AuditVerdict,
  }),
  describe: contract('authz.service.describe', { access: 'internal', input: z.strictObject({}), output: Description }),
};
