import { createHash } from 'node:crypto';

/**
 * Identity of one logical effect, the same over retries and takeovers: attempt is not part of it. (RFC 0150, idempotency.md
 * §8.2: sha256 over the recipe's name and the parts, NUL between them, base64url without padding)
 */
export function logicalInvocationId(parts: {
  tenant: string;
  runId: string;
  nodeId: string;
  ordinal: number;
  providerKey: string;
}): string {
  const { tenant, runId, nodeId, ordinal, providerKey } = parts;
  return createHash('sha256')
    .update(['openwop:activity:v2', tenant, runId, nodeId, String(ordinal), providerKey].join('\0'))
    .digest('base64url');
}
