import type { Json, JsonObject, RunOutcome } from '@isthmus/protocol';
import { ContentBlockSchema } from '@modelcontextprotocol/core';
import { schemaProblem } from '@isthmus/schemas';

type Settled = Exclude<RunOutcome, { is: 'working' | 'waiting' }>;

/**
 * What became of a run, as the result of the tool call that started it. A run that failed or was cancelled is a result with
 * `isError`, which a model can act on, never a JSON-RPC error. (spec/authz.md §7.2)
 */
export function runAsTool(runId: string, outcome: Settled, outputSchema?: JsonObject): JsonObject {
  return { ...AS[outcome.is](outcome as never, outputSchema), _meta: metaOf(runId, outcome) };
}

const AS: { readonly [K in Settled['is']]: (outcome: Extract<Settled, { is: K }>, outputSchema?: JsonObject) => JsonObject } = {
  completed: ({ outputs }, outputSchema) => completed(outputs, outputSchema),
  failed: ({ error }) => errorResult(`${error.code}: ${error.message}`),
  cancelled: ({ reason }) => errorResult(`tool_canceled: The run was cancelled${reason ? ` (${reason})` : ''}.`),
};

export const errorResult = (message: string): JsonObject => ({ content: [{ type: 'text', text: message }], isError: true });

/**
 * Outputs that are a tool result already (an `invoke-tool` node hands one on) stand as they are; any others are structured
 * content, and the same as text for clients that know only that.
 */
function completed(outputs: JsonObject, outputSchema?: JsonObject): JsonObject {
  const ready = asResult(outputs);
  const result: JsonObject = ready ?? { content: [{ type: 'text', text: JSON.stringify(outputs) }], structuredContent: outputs };
  if (!outputSchema || result['isError'] === true) return result;
  // A server must keep what its outputSchema promises; clients check. (spec/mcp.md §1.9)
  const problem = schemaProblem(outputSchema, (result['structuredContent'] ?? null) as Json);
  return problem
    ? errorResult('tool_output_invalid: The run completed with outputs that the outputSchema of the tool does not allow.')
    : result;
}

const MEMBERS = new Set(['content', 'structuredContent', 'isError']);

function asResult(outputs: JsonObject): JsonObject | undefined {
  const { content, isError } = outputs;
  const isResult =
    Array.isArray(content) &&
    content.length > 0 &&
    Object.keys(outputs).every((key) => MEMBERS.has(key)) &&
    (isError === undefined || typeof isError === 'boolean') &&
    content.every((block: Json) => ContentBlockSchema.safeParse(block).success);
  return isResult ? outputs : undefined;
}

/** Where the result came from, for people and for tools that read the run over REST. */
const metaOf = (runId: string, outcome: Settled): JsonObject => ({
  'dev.isthmus/runId': runId,
  ...(outcome.is === 'completed' && outcome.contentTrust === 'untrusted' && { 'dev.isthmus/contentTrust': 'untrusted' }),
  ...(outcome.is === 'failed' && { 'dev.isthmus/code': outcome.error.code }),
  ...(outcome.is === 'cancelled' && { 'dev.isthmus/code': 'tool_canceled' }),
});
