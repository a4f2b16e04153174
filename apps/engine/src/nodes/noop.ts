import { z } from 'zod';
import { pureNode } from './node-type.js';

/** `core.noop`: completes. */
export const noop = pureNode({ role: 'pure', config: z.looseObject({}), run: () => ({ is: 'completed', outputs: {} }) });
