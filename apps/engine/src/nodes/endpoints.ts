import { z } from 'zod';
import { pureNode } from './node-type.js';

/** `core.start`, `core.end`, `core.merge`, `core.parallel`: places in a graph; what comes in goes out. */
export const endpoint = pureNode({
  role: 'control',
  config: z.looseObject({}),
  run: ({ untrusted }, _config, inputs) => ({ is: 'completed', outputs: inputs, untrusted }),
});
