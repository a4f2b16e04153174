import { z } from 'zod';
import { Json } from '@isthmus/protocol';
import { failed, pureNode } from './node-type.js';

/** `core.setVariable`: config `variableName` (or `name`), the value from input `value`, else from config `value`. */
export const setVariable = pureNode({
  role: 'pure',
  config: z
    .looseObject({
      variableName: z.string().min(1).max(256).optional(),
      name: z.string().min(1).max(256).optional(),
      value: Json.optional(),
    })
    .refine(({ variableName, name }) => variableName !== undefined || name !== undefined, {
      path: ['variableName'],
      message: 'is missing',
    }),
  inputs: z.looseObject({ value: Json.optional() }),
  run: ({ nodeId, untrusted }, config, inputs) => {
    // Null is a value, too.
    const value = inputs.value === undefined ? config.value : inputs.value;
    if (value === undefined)
      return failed('variable_missing', `Node "${nodeId}" (core.setVariable) has neither an input nor a config "value".`);
    const name = config.variableName ?? config.name ?? '';
    return { is: 'completed', outputs: { value }, untrusted, sets: [{ name, value }] };
  },
});
