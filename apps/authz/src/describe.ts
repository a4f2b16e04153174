import type { Description } from '@isthmus/protocol';
import { INTERVAL } from './audit-checkpoints.js';

/**
 * What authz honestly does. A principal may hold several keys at once, each is revoked by itself and at no other time, so the
 * overlap of a rotation is as long as the operator leaves it: nothing shorter or longer is enforced, hence 0.
 * The `authorization` family is absent: principals hold scopes, there are no roles and no decision service. (RFC 0049)
 */
export const describe = (checkpointPublicKey: string): Description => ({
  service: 'authz',
  version: '0.0.0',
  discovery: {
    auth: {
      profiles: ['openwop-auth-api-key-rotation', 'openwop-audit-log-integrity'],
      rotation: { supported: true, minGraceSeconds: 0 },
      auditLogIntegrity: {
        hashChain: true,
        checkpointSignatureAlgorithm: 'ed25519',
        checkpointPublicKey,
        checkpointIntervalEntries: INTERVAL.entries,
        checkpointIntervalSeconds: INTERVAL.seconds,
      },
    },
  },
});
