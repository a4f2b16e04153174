import { EXPOSURE_KINDS, type Exposure, type JsonObject, validationError, type WorkflowDefinition, WopError } from '@isthmus/protocol';
import { approvalGate } from './approval-gate.js';
import { channelWrite } from './channel-write.js';
import { clarificationGate } from './clarification-gate.js';
import { conditional } from './conditional.js';
import { conformanceMcpInvoke } from './conformance-mcp-invoke.js';
import { conformanceSideEffect } from './conformance-side-effect.js';
import { delay } from './delay.js';
import { endpoint } from './endpoints.js';
import { exposeTool } from './expose-tool.js';
import { fail } from './fail.js';
import { getVariable } from './get-variable.js';
import { governedGate } from './governed-gate.js';
import { handleElicitation } from './handle-elicitation.js';
import { identity } from './identity.js';
import { interrupt } from './interrupt.js';
import { invokeTool } from './invoke-tool.js';
import type { NodeType } from './node-type.js';
import { noop } from './noop.js';
import { requiresMissing } from './requires-missing.js';
import { setVariable } from './set-variable.js';
import { subWorkflow } from './sub-workflow.js';

/** Every node type there is. One line and one file to add one. */
export const NODES: Readonly<Record<string, NodeType>> = {
  'core.start': endpoint,
  'core.end': endpoint,
  'core.merge': endpoint,
  'core.parallel': endpoint,
  'core.noop': noop,
  'core.identity': identity,
  'core.delay': delay,
  'core.fail': fail,
  'core.setVariable': setVariable,
  'core.getVariable': getVariable,
  'core.conditional': conditional,
  'core.channelWrite': channelWrite,
  'core.interrupt': interrupt,
  'core.subWorkflow': subWorkflow,
  'core.approvalGate': approvalGate,
  'core.clarificationGate': clarificationGate,
  'core.openwop.governance.approvalGate': governedGate,
  'conformance.requiresMissing': requiresMissing,
  // As the registry has `core.delay` for side-effecting, suites wait with a type that is not. Ours sleeps without an effect either way.
  'core.conformance.hold': delay,
  'core.conformance.side-effect': conformanceSideEffect,
  'core.conformance.mcp-invoke': conformanceMcpInvoke,
  'core.ai.callPrompt': conformanceMcpInvoke,
  'core.openwop.mcp.invoke-tool': invokeTool,
  'core.openwop.mcp.expose-tool': exposeTool,
  'core.openwop.mcp.handle-elicitation': handleElicitation,
};

export const nodeType = (typeId: string): NodeType | undefined => (Object.hasOwn(NODES, typeId) ? NODES[typeId] : undefined);

/** What each `expose-*` type publishes, and under which member of its config the name stands. */
const EXPOSES: Readonly<Record<string, { readonly kind: (typeof EXPOSURE_KINDS)[number]; readonly name: string }>> = {
  'core.openwop.mcp.expose-tool': { kind: 'tool', name: 'name' },
};

/** What a definition publishes on MCP mounts. */
export const exposuresOf = ({ id, nodes }: WorkflowDefinition): readonly Exposure[] =>
  nodes.flatMap(({ id: nodeId, typeId, config }) => {
    const exposes = Object.hasOwn(EXPOSES, typeId) ? EXPOSES[typeId] : undefined;
    return exposes ? [{ kind: exposes.kind, name: String(config[exposes.name]), workflowId: id, nodeId, manifest: config }] : [];
  });

/** @throws WopError `capability_required` for a type this host does not have, `validation_error` for a config it refuses */
export function checkNodes(definition: WorkflowDefinition): void {
  for (const [index, node] of definition.nodes.entries()) {
    const type = nodeType(node.typeId);
    if (!type) {
      throw new WopError(
        'capability_required',
        `Node "${node.id}" is of type "${node.typeId}", which this host does not have. It has: ${Object.keys(NODES).join(', ')}.`,
        {
          requiredCapability: node.typeId,
          offendingTypeId: node.typeId,
          nodeId: node.id,
        },
      );
    }
    const config = type.config.safeParse(node.config);
    if (!config.success) {
      const { message, details } = validationError(config.error, `config of node "${node.id}"`);
      const issues = ((details?.['issues'] ?? []) as readonly JsonObject[]).map((issue) => ({
        ...issue,
        path: `nodes.${index}.config.${String(issue['path'])}`,
      }));
      throw new WopError('validation_error', message, { nodeId: node.id, issues });
    }
  }
}
