import { z } from 'zod';
import { failedForGood, pureNode } from './node-type.js';

/** `core.getVariable`: outputs `{value}` of the variable that config `variableName` (or `name`) names. */
export const getVariable = pureNode({
  role: 'pure',
  config: z
    .looseObject({ variableName: z.string().min(1).max(256).optional(), name: z.string().min(1).max(256).optional() })
    .refine(({ variableName, name }) => variableName !== undefined || name !== undefined, {
      path: ['variableName'],
      message: 'is missing',
    }),
  run: ({ nodeId, variable, variableTaint }, config) => {
    const name = config.variableName ?? config.name ?? '';
    const value = variable(name);
    if (value === undefined)
      return failedForGood('variable_missing', `Node "${nodeId}" reads the variable "${name}", which does not exist.`);
    return { is: 'completed', outputs: { value }, ...variableTaint(name) };
  },
});
