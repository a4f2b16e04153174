import { JsonObject } from '@isthmus/protocol';
import { z } from 'zod';
import { callRemoteTool } from './invoke-tool.js';
import { effectNode } from './node-type.js';

/** The mount that is meant where a definition names none. `--conformance` binds it to the server of OPENWOP_MCP_FAKE_SERVER_URL. */
export const CONFORMANCE_SERVER = 'conformance';

/**
 * `core.conformance.mcp-invoke`, and `core.ai.callPrompt` as far as it has `config.mcp`: calls a tool by name, over the same way
 * as every remote tool. There is no model behind the latter, so without `config.mcp` it is refused at registration.
 */
export const conformanceMcpInvoke = effectNode({
  role: 'side-effect',
  config: z.looseObject({
    mcp: z.looseObject({
      serverId: z.string().min(1).max(128).default(CONFORMANCE_SERVER),
      tool: z.string().min(1).max(256),
      arguments: JsonObject.default({}),
      timeoutMs: z.int().min(100).max(300_000).default(30_000),
    }),
  }),
  inputs: z.looseObject({ arguments: JsonObject.optional() }),
  run: (context, { mcp: { serverId, tool, timeoutMs, arguments: fixed } }, { arguments: given = fixed }) =>
    callRemoteTool(context, { serverId, toolName: tool, timeoutMs, args: given }),
});
