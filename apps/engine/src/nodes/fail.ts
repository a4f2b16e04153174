import { z } from 'zod';
import { failed, pureNode } from './node-type.js';

/** `core.fail`: always fails. */
export const fail = pureNode({
  role: 'pure',
  config: z.looseObject({
    code: z.string().min(1).max(128).default('node_failed'),
    message: z.string().min(1).max(2_000).default('This node always fails.'),
  }),
  run: (_context, { code, message }) => failed(code, message),
});
