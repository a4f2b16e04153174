import type { RunError } from '@isthmus/protocol';
import type { Graph } from './graph.js';

const MAX_DELAY_MS = 60_000;
const FIRST_DELAY_MS = 200;

/**
 * How long to wait before the next attempt of a node that failed, or undefined when there is none: the error says it is final,
 * or `settings.maxRetries` (the node's, else the workflow's) is used up. Doubles from `settings.retryDelayMs` (200 ms).
 */
export function retryDelay(graph: Graph, nodeId: string, attempt: number, error: RunError): number | undefined {
  if (error.retryable === false) return undefined;
  const settings = graph.nodes.get(nodeId)?.settings;
  const most = numberOf(settings?.['maxRetries']) ?? graph.definition.settings.maxRetries ?? 0;
  if (attempt >= most) return undefined;
  const first = numberOf(settings?.['retryDelayMs']) ?? FIRST_DELAY_MS;
  return Math.min(MAX_DELAY_MS, Math.round(first * 2 ** attempt));
}

const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined;
