import { z } from 'zod';
import { pureNode } from './node-type.js';

/** `core.identity`: its outputs are its inputs. */
export const identity = pureNode({
  role: 'pure',
  config: z.looseObject({}),
  run: (context, _config, inputs) => ({ is: 'completed', outputs: inputs, untrusted: context.untrusted }),
});
