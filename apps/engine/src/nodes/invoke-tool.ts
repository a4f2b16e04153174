import { isWopError, type Json, JsonObject, type ToolReply, type WopError } from '@isthmus/protocol';
import { z } from 'zod';
import { clarificationOf, Elicitation, elicitResultOf } from './elicitation.js';
import { type EffectContext, effectNode, failed, type Result, type ToolCall } from './node-type.js';
import { markUntrusted } from './trust-marker.js';

/** Rounds a remote tool may ask in before we stop. */
const MAX_ROUNDS = 8;

/** `core.openwop.mcp.invoke-tool`: calls a tool of a remote MCP server. */
export const invokeTool = effectNode({
  role: 'side-effect',
  config: z.looseObject({
    serverId: z.string().min(1).max(128),
    toolName: z.string().min(1).max(256),
    timeoutMs: z.int().min(100).max(300_000).default(30_000),
  }),
  inputs: z.looseObject({ args: JsonObject.default({}) }),
  run: (context, { serverId, toolName, timeoutMs }, { args }) => callRemoteTool(context, { serverId, toolName, timeoutMs, args }),
});

/**
 * Calls a tool through to its result. When the server asks for input, each request becomes a clarification and the node waits;
 * once all are answered the call is retried with the server's `requestState`, byte for byte. A result with `isError` is a
 * completed call. (mcp-integration.md, MRTR)
 */
export async function callRemoteTool(
  context: EffectContext,
  { serverId, toolName, timeoutMs, args }: Parameters<EffectContext['callTool']>[0],
): Promise<Result> {
  const call = await context.callTool({ serverId, toolName, args, timeoutMs });
  try {
    let reply = await call.round(0);
    for (let round = 1; reply.is === 'input_required'; round += 1) {
      if (round > MAX_ROUNDS)
        return gaveUp(
          call,
          'mcp_mrtr_rounds_exceeded',
          `Tool "${toolName}" of server "${serverId}" asked for input more than ${MAX_ROUNDS} times.`,
        );
      const asked = Object.entries(reply.inputRequests).map(([key, request]) => ({
        key,
        // Ids of nodes hold no slash: a key that the remote side chose is never the key of another node.
        interrupt: `${call.callId}/${round}/${key}`,
        request,
      }));
      const unknown = asked.find(
        ({ request }) => request['method'] !== 'elicitation/create' || !Elicitation.safeParse(request['params']).success,
      );
      if (unknown)
        return gaveUp(call, 'mcp_tool_invocation_failed', `Tool "${toolName}" asked for input of a kind that this host did not offer.`);
      const open = asked.filter(({ interrupt }) => context.answer(interrupt) === undefined);
      if (open.length > 0) {
        const requests = open.map(({ key, interrupt, request }) => ({
          request: clarificationOf(interrupt, Elicitation.parse(request['params']), { inputRequestKey: key, serverId, toolName }),
          untrusted: true,
        }));
        return { is: 'suspended', requests };
      }
      const inputResponses = Object.fromEntries(
        asked.map(({ key, interrupt }) => [key, elicitResultOf(context.answer(interrupt) as Json)]),
      );
      reply = await call.round(round, { ...(reply.requestState !== undefined && { requestState: reply.requestState }), inputResponses });
    }
    return completed(call, toolName, reply);
  } catch (error) {
    if (!isWopError(error)) throw error;
    return refused(call, error);
  }
}

function completed(call: ToolCall, toolName: string, reply: Extract<ToolReply, { is: 'complete' }>): Result {
  const result = resultOf(reply.result);
  const outputs = {
    result,
    isError: reply.isError,
    untrustedContent: true,
    ...(result !== null && { markedContent: markUntrusted(toolName, result) }),
  };
  const returned = call.returned({
    status: reply.isError ? 'error' : 'ok',
    value: reply.result,
    isError: reply.isError,
    negotiatedVersion: reply.negotiatedVersion,
  });
  return { is: 'completed', outputs, untrusted: true, before: [returned] };
}

/** What the graph works with: structured content, else the text, else the blocks. */
function resultOf(result: JsonObject): Json {
  if (result['structuredContent'] !== undefined) return result['structuredContent'];
  const content = Array.isArray(result['content']) ? (result['content'] as JsonObject[]) : [];
  if (content.every((block) => block['type'] === 'text')) return content.map((block) => String(block['text'])).join('\n');
  return content;
}

function gaveUp(call: ToolCall, code: string, message: string): Result {
  return failed(code, message, [call.returned({ status: 'error', error: { code, message } })]);
}

function refused(call: ToolCall, error: WopError): Result {
  const status = error.code === 'forbidden' ? 'forbidden' : error.code === 'rate_limited' ? 'rate_limited' : 'error';
  const shown = { code: error.code, message: error.message, ...(error.details && { details: error.details }) };
  return { is: 'failed', error: shown, before: [call.returned({ status, error: { code: error.code, message: error.message } })] };
}
