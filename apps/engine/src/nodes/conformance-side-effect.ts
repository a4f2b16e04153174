import { z } from 'zod';
import { effectNode } from './node-type.js';

/**
 * `core.conformance.side-effect`: reserved for suites, which look at what a replay does with it. It runs where effects run, once,
 * and a replay reads its recorded outcome back or fails closed. (replay.md, side-effect suppression)
 */
export const conformanceSideEffect = effectNode({
  role: 'side-effect',
  config: z.looseObject({}),
  run: () => Promise.resolve({ is: 'completed', outputs: { performed: true } }),
});
