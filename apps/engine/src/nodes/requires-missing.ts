import { z } from 'zod';
import { pureNode } from './node-type.js';

/** `conformance.requiresMissing`: needs a capability that no host has, so that suites see the refusal. Never executed. */
export const requiresMissing = pureNode({
  role: 'pure',
  config: z.looseObject({}),
  requires: 'conformance.never-provided',
  run: () => ({ is: 'completed', outputs: {} }),
});
