import type { Json, JsonObject } from '@isthmus/protocol';
import type { Graph } from './graph.js';
import type { RunState, Stored } from './state.js';

/** What stands where a secret would. (SR-1) */
export const MASKED = '[REDACTED]';

/** What the log shows of a value: itself, or its hash, size and trust. Results of MCP tools never stand in it. (rule MCP-1) */
export const contentOf = (stored: Stored): Json =>
  stored.is === 'inline'
    ? stored.value
    : stored.secret
      ? MASKED
      : { sha256: stored.sha256, length: stored.bytes, ...(stored.untrusted && { contentTrust: 'untrusted' }) };

const EXPOSES = 'core.openwop.mcp.expose-';

/**
 * A run's outputs: those of the completed nodes whose `outputRole` is primary, else of the completed nodes that lead
 * nowhere. One such node gives its outputs as they are, several give them by node id. Nodes that only publish give none.
 */
export function outputsOf(graph: Graph, state: RunState, read: (stored: Stored) => Json): JsonObject {
  const completed = [...graph.nodes.values()].filter(
    (node) => state.nodes.get(node.id)?.status === 'completed' && !node.typeId.startsWith(EXPOSES),
  );
  const primary = completed.filter(({ outputRole }) => outputRole === 'primary');
  const chosen =
    primary.length > 0
      ? primary
      : completed.filter(({ id, outputRole }) => outputRole !== 'secondary' && (graph.outgoing.get(id) ?? []).length === 0);
  const outputs = chosen.map(({ id }) => [id, read(state.nodes.get(id)?.outputs ?? { is: 'inline', value: {} })] as const);
  const [only] = outputs;
  if (outputs.length === 1 && only && isObject(only[1])) return only[1];
  return Object.fromEntries(outputs);
}

const isObject = (value: Json): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);
