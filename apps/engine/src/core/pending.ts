import { isTerminal } from '@isthmus/protocol';
import type { Graph } from './graph.js';
import { readiness } from './readiness.js';
import type { RunState } from './state.js';

/** Work that a run still owes: a node to begin (again, not before `notBefore`), or one that began and has no outcome yet. */
export type Effect = { readonly nodeId: string; readonly is: 'begin' | 'reenter'; readonly notBefore?: number };

/** Derived, never stored: after a crash the answer is the same. In the definition's order, so that replays agree. */
export function pending(graph: Graph, state: RunState): readonly Effect[] {
  if (isTerminal(state.status) || state.head < 0 || state.pausedAt !== undefined) return [];
  const effects: Effect[] = [];
  for (const nodeId of graph.nodes.keys()) {
    const node = state.nodes.get(nodeId);
    if (node?.status === 'running') effects.push({ nodeId, is: 'reenter' });
    else if (node?.status === 'retrying') effects.push({ nodeId, is: 'begin', notBefore: node.retryAt ?? 0 });
    else if (!node && readiness(graph, state, nodeId).is === 'run') effects.push({ nodeId, is: 'begin' });
  }
  return effects;
}
