import type { Edge, TriggerRule } from '@isthmus/protocol';
import type { Graph } from './graph.js';
import type { RunState } from './state.js';

/** What came along an edge: nothing yet, a success, a failure, or word that nothing will come. */
type Arrival = 'pending' | 'success' | 'failure' | 'skipped';

export type Readiness = { readonly is: 'wait' } | { readonly is: 'run' } | { readonly is: 'skip'; readonly reason: string };

const WAIT: Readiness = { is: 'wait' };
const RUN: Readiness = { is: 'run' };

function arrival(state: RunState, edge: Edge): Arrival {
  const source = state.nodes.get(edge.sourceNodeId);
  if (source?.status === 'skipped') return 'skipped';
  if (source?.status !== 'completed' && source?.status !== 'failed') return 'pending';
  if (state.edges.get(edge.id) === false) return 'skipped';
  return source.status === 'completed' ? 'success' : 'failure';
}

type Counts = { readonly [A in Arrival]: number };

/**
 * When a node fires. `any_*` fire on the first match; the others wait until every source has ended. A branch that was not taken
 * counts as skipped, and a node whose sources were all skipped is skipped itself, but for `none_failed`, which asks only that.
 * (workflow-definition.schema.json names the rules; their evaluation is host-defined)
 */
const RULES: { readonly [R in TriggerRule]: (n: Counts) => Readiness } = {
  all_success: (n) => (n.failure > 0 ? skip('a source failed') : n.pending > 0 ? WAIT : n.success > 0 ? RUN : skip('no branch leads here')),
  any_success: (n) => (n.success > 0 ? RUN : n.pending > 0 ? WAIT : skip('no source succeeded')),
  all_complete: (n) => (n.pending > 0 ? WAIT : n.success + n.failure > 0 ? RUN : skip('no branch leads here')),
  none_failed: (n) => (n.failure > 0 ? skip('a source failed') : n.pending > 0 ? WAIT : RUN),
  any_failed: (n) => (n.failure > 0 ? RUN : n.pending > 0 ? WAIT : skip('no source failed')),
};

const skip = (reason: string): Readiness => ({ is: 'skip', reason });

/** May this node, which has not begun, begin now? */
export function readiness(graph: Graph, state: RunState, nodeId: string): Readiness {
  if (graph.nodes.get(nodeId)?.disabled) return skip('disabled');
  const edges = graph.incoming.get(nodeId) ?? [];
  if (edges.length === 0) return RUN;
  const counts = { pending: 0, success: 0, failure: 0, skipped: 0 };
  for (const edge of edges) counts[arrival(state, edge)] += 1;
  return RULES[graph.rules.get(nodeId) ?? 'all_success'](counts);
}

/** Is someone there to deal with the failure of this node? A disabled node deals with nothing. */
export function isHandled(graph: Graph, state: RunState, nodeId: string): boolean {
  return (graph.outgoing.get(nodeId) ?? []).some((edge) => {
    if (graph.nodes.get(edge.targetNodeId)?.disabled) return false;
    const rule = graph.rules.get(edge.targetNodeId);
    return state.edges.get(edge.id) !== false && (rule === 'any_failed' || rule === 'all_complete');
  });
}
