import { type JsonObject, Question } from '@isthmus/protocol';
import { z } from 'zod';
import { failedForGood, pureNode, type Result } from './node-type.js';

/** `core.clarificationGate`: asks questions; its outputs are the answers, also by question id. */
export const clarificationGate = pureNode({
  role: 'control',
  config: z.looseObject({ questions: z.array(Question).min(1).max(100), contextType: z.string().max(256).optional() }),
  run: ({ nodeId, isRouted, answer }, { questions, contextType }) => {
    const answered = answer(nodeId) as JsonObject | undefined;
    if (answered === undefined) {
      const data = { questions, ...(contextType !== undefined && { contextType }) } as unknown as JsonObject;
      return { is: 'suspended', requests: [{ request: { kind: 'clarification', key: nodeId, data } }] };
    }
    return declinedOr(nodeId, isRouted, answered, { ...(answered['answers'] as JsonObject), ...answered });
  },
});

/** A "no" is an output where the graph routes on it, else it ends the run. */
export const declinedOr = (nodeId: string, isRouted: boolean, answered: JsonObject, outputs: JsonObject): Result =>
  answered['action'] === 'timeout' && !isRouted
    ? failedForGood('interrupt_expired', `Nobody answered node "${nodeId}" in time.`)
    : answered['action'] === 'accept' || isRouted
      ? { is: 'completed', outputs }
      : failedForGood('clarification_declined', `The questions of node "${nodeId}" were declined.`);
