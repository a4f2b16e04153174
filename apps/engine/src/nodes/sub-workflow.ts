import { isTerminal, isWopError, type Json, WorkflowId } from '@isthmus/protocol';
import { z } from 'zod';
import { effectNode, failed, failedForGood } from './node-type.js';

const Mapping = z.record(z.string(), z.string());

/**
 * `core.subWorkflow`: a run of another workflow. It starts with `inputMapping` (child variable ← variable of this run) and gives
 * back `outputMapping` (variable of this run ← child variable) when it completed. (execution §7.3)
 */
export const subWorkflow = effectNode({
  role: 'side-effect',
  config: z.looseObject({
    workflowId: WorkflowId,
    waitForCompletion: z.boolean().default(true),
    onChildFailure: z.enum(['fail-parent', 'absorb']).default('fail-parent'),
    inputMapping: Mapping.default({}),
    outputMapping: Mapping.default({}),
    propagateCancellation: z.boolean().default(true),
  }),
  run: async ({ variable, startChild, untrusted, nodeId }, config, inputs) => {
    const mapped = Object.entries(config.inputMapping).flatMap(([child, parent]): [string, Json][] => {
      const value = variable(parent);
      return value === undefined ? [] : [[child, value]];
    });
    try {
      const child = await startChild({
        workflowId: config.workflowId,
        inputs: { ...inputs, ...Object.fromEntries(mapped) },
        propagate: config.propagateCancellation,
      });
      const outputs = { childRunId: child.runId, childStatus: child.status };
      if (!config.waitForCompletion) return { is: 'completed', outputs };
      if (!isTerminal(child.status)) return { is: 'awaiting', childRunId: child.runId };
      if (child.status !== 'completed' && config.onChildFailure === 'fail-parent') {
        const why = child.error ? `: ${child.error.message}` : '.';
        return failed('child_failed', `The run ${child.runId} of node "${nodeId}" ended as ${child.status}${why}`);
      }
      const harvest = child.status === 'completed' ? Object.entries(config.outputMapping) : [];
      const sets = harvest.flatMap(([name, from]) =>
        child.variables[from] === undefined ? [] : [{ name, value: child.variables[from] as Json }],
      );
      return { is: 'completed', outputs, sets, untrusted };
    } catch (error) {
      if (!isWopError(error)) throw error;
      return failedForGood(error.code, error.message);
    }
  },
});
