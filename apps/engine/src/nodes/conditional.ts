import { Condition } from '@isthmus/protocol';
import { z } from 'zod';
import { conditionProblem, test } from '../core/conditions.js';
import { failedForGood, pureNode } from './node-type.js';

/** `core.conditional`: holds its inputs against a predicate; outputs `{branch: then|else, matched, value}` to route on. */
export const conditional = pureNode({
  role: 'pure',
  config: z
    .looseObject({ predicate: Condition.optional(), condition: Condition.optional(), expression: z.string().max(10_000).optional() })
    .superRefine((config, context) => {
      const problem = conditionProblem(predicateOf(config));
      if (problem) context.addIssue({ code: 'custom', path: ['predicate'], message: problem });
    }),
  run: ({ nodeId, untrusted }, config, inputs) => {
    const verdict = test(predicateOf(config), { status: 'running', output: inputs, variables: inputs, inputs });
    if (verdict.is === 'error')
      return failedForGood('expression_failed', `The predicate of node "${nodeId}" could not be evaluated: ${verdict.message}`);
    const value = inputs['value'] ?? null;
    return { is: 'completed', outputs: { branch: verdict.taken ? 'then' : 'else', matched: verdict.taken, value }, untrusted };
  },
});

type Config = { predicate?: Condition | undefined; condition?: Condition | undefined; expression?: string | undefined };
const predicateOf = ({ predicate, condition, expression }: Config): Condition =>
  predicate ?? condition ?? { type: 'expression', ...(expression !== undefined && { expression }) };
