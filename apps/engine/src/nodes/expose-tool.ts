import { JsonObject } from '@isthmus/protocol';
import { z } from 'zod';
import { pureNode } from './node-type.js';

/** `core.openwop.mcp.expose-tool`: publishes its workflow as a tool (at registration). In a run it only says so. */
export const ExposeTool = z.looseObject({
  name: z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/, 'must be 1 to 128 of A-Z a-z 0-9 _ . -'),
  title: z.string().max(500).optional(),
  description: z.string().max(10_000).optional(),
  inputSchema: JsonObject.optional(),
  outputSchema: JsonObject.optional(),
  annotations: JsonObject.optional(),
});

export const exposeTool = pureNode({
  role: 'side-effect',
  config: ExposeTool,
  run: (_context, { name }) => ({ is: 'completed', outputs: { handle: name, kind: 'tool' } }),
});
