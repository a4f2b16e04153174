import { APPROVAL_ACTIONS, ApprovalAction, type Json, type JsonObject } from '@isthmus/protocol';
import { z } from 'zod';
import { failedForGood, pureNode } from './node-type.js';

const Config = z.looseObject({
  title: z.string().min(1).max(500).optional(),
  description: z.string().max(10_000).optional(),
  actions: z.array(ApprovalAction).min(1).max(APPROVAL_ACTIONS.length).default(['accept', 'reject']),
  requiredApprovals: z.int().min(1).max(100).default(1),
  rejectionPolicy: z.enum(['single-veto', 'majority']).default('single-veto'),
  approversList: z.array(z.string().min(1).max(128)).max(1_000).optional(),
  approverGroupRefs: z.array(z.string().min(1).max(128)).max(100).optional(),
  approverRoleRefs: z.array(z.string().min(1).max(128)).max(100).optional(),
  override: z.looseObject({ requiredRole: z.string().min(1).max(128) }).optional(),
  overrideBypassesQuorum: z.boolean().default(false),
  timeoutMs: z.int().min(0).optional(),
  profile: z.string().max(128).optional(),
  artifactId: z.string().min(1).max(256).optional(),
  artifactType: z.string().min(1).max(256).default('node.inputs'),
});

/**
 * `core.approvalGate`: asks people. What the node got as inputs is what they approve (`artifactData`), with its trust. A
 * rejection ends the run unless the graph routes on the gate's output.
 */
export const approvalGate = pureNode({
  role: 'control',
  config: Config,
  run: ({ nodeId, nodeName, isRouted, untrusted, answer }, config, inputs) => {
    const decided = answer(nodeId) as JsonObject | undefined;
    if (decided === undefined) {
      const {
        title,
        description,
        actions,
        requiredApprovals,
        rejectionPolicy,
        approversList,
        artifactId,
        artifactType,
        timeoutMs,
        profile,
      } = config;
      const { approverGroupRefs, approverRoleRefs, override, overrideBypassesQuorum } = config;
      const data: JsonObject = {
        artifactId: artifactId ?? nodeId,
        artifactType,
        title: title ?? nodeName,
        actions,
        requiredApprovals,
        rejectionPolicy,
        ...(description !== undefined && { description }),
        ...(approversList && { approversList }),
        ...(approverGroupRefs && { approverGroupRefs }),
        ...(approverRoleRefs && { approverRoleRefs }),
        ...(override && { overriders: [override.requiredRole], overrideBypassesQuorum }),
        ...(profile === 'openwop-interrupt-auth-required' && { authRequired: true }),
      };
      const hasInputs = Object.keys(inputs).length > 0;
      return {
        is: 'suspended',
        requests: [
          {
            request: { kind: 'approval', key: nodeId, data, ...(timeoutMs !== undefined && { timeoutMs }) },
            ...(hasInputs && { artifact: inputs as Json, untrusted }),
          },
        ],
      };
    }
    if (decided['action'] === 'reject' && !isRouted) {
      const comment = typeof decided['comment'] === 'string' ? `: ${decided['comment'].slice(0, 500)}` : '.';
      return failedForGood('approval_rejected', `The approval "${nodeId}" was rejected${comment}`);
    }
    return { is: 'completed', outputs: decided };
  },
});
