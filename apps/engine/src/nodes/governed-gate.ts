import { type JsonObject, JsonObject as Schema } from '@isthmus/protocol';
import { z } from 'zod';
import { failedForGood, pureNode } from './node-type.js';

/**
 * `core.openwop.governance.approvalGate` (RFC 0051): only principals with the required role or scope decide; a rejection is an
 * output to route on, not the end of the run; an override needs its role and a reason; time running out is a rejection.
 */
export const governedGate = pureNode({
  role: 'control',
  config: z
    .looseObject({
      title: z.string().min(1).max(500).optional(),
      requiredRole: z.string().min(1).max(128).optional(),
      requiredScope: z.string().min(1).max(128).optional(),
      quorum: z.int().min(1).max(100).default(1),
      override: z.looseObject({ requiredRole: z.string().min(1), audited: z.boolean().optional() }).optional(),
      overrideBypassesQuorum: z.boolean().default(false),
      timeoutSec: z.number().min(0).optional(),
      resumeSchema: Schema.optional(),
    })
    .refine(({ requiredRole, requiredScope }) => requiredRole !== undefined || requiredScope !== undefined, {
      path: ['requiredRole'],
      message: 'is missing: a governed gate names a role or a scope',
    }),
  run: ({ nodeId, nodeName, untrusted, answer, isRouted }, config, inputs) => {
    const decided = answer(nodeId) as JsonObject | undefined;
    if (decided === undefined) {
      const { title, requiredRole, requiredScope, quorum, override, overrideBypassesQuorum, timeoutSec } = config;
      const data: JsonObject = {
        artifactId: nodeId,
        artifactType: 'node.inputs',
        title: title ?? nodeName,
        actions: ['accept', 'reject'],
        requiredApprovals: quorum,
        rejectionPolicy: 'single-veto',
        gateId: nodeId,
        approverRoleRefs: [requiredRole, requiredScope && `scope:${requiredScope}`].filter((ref): ref is string => typeof ref === 'string'),
        overrideBypassesQuorum,
        ...(override && { overriders: [override.requiredRole] }),
      };
      const hasInputs = Object.keys(inputs).length > 0;
      const request = {
        kind: 'approval' as const,
        key: nodeId,
        data,
        ...(timeoutSec !== undefined && { timeoutMs: Math.ceil(timeoutSec * 1_000) }),
      };
      return { is: 'suspended', requests: [{ request, ...(hasInputs && { artifact: inputs, untrusted }) }] };
    }
    const granted = decided['action'] !== 'reject';
    if (!granted && !isRouted) return failedForGood('approval_rejected', `The approval "${nodeId}" was rejected.`);
    return { is: 'completed', outputs: { ...decided, decision: granted ? 'granted' : 'rejected' } };
  },
});
