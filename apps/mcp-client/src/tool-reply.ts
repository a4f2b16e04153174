import { type Json, type JsonObject, MAX_JSON_DEPTH, type ToolReply } from '@isthmus/protocol';
import { resultTooLarge } from './remote-fetch.js';
import { invocationFailed } from './failure.js';

/**
 * What a server answered to `tools/call`, as the contract says it. The SDK has checked the shape; here it is held to what was
 * offered: it may ask for a form, for nothing else.
 */
export function toolReply(answer: unknown, negotiatedVersion: string, maxResultBytes: number): ToolReply {
  if (isNestedTooDeep(answer as Json))
    throw invocationFailed(`gave an answer nested deeper than ${MAX_JSON_DEPTH} levels`, { reason: 'invalid_answer' });
  const result = answer as JsonObject;
  const reply: ToolReply =
    result['resultType'] === 'input_required'
      ? inputRequired(result, negotiatedVersion)
      : { is: 'complete', result, isError: result['isError'] === true, negotiatedVersion };
  if (Buffer.byteLength(JSON.stringify(reply)) > maxResultBytes) throw resultTooLarge(maxResultBytes);
  return reply;
}

function inputRequired({ inputRequests, requestState }: JsonObject, negotiatedVersion: string): ToolReply {
  const asked = Object.entries((inputRequests ?? {}) as JsonObject);
  if (!asked.every(([, request]) => isForm(request)))
    throw invocationFailed('asks for a kind of input it was not offered', { reason: 'undeclared_input_request' });
  return {
    is: 'input_required',
    inputRequests: Object.fromEntries(asked) as Record<string, JsonObject>,
    ...(typeof requestState === 'string' && { requestState }),
    negotiatedVersion,
  };
}

const isObject = (value: Json | undefined): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);

/** URL mode would send a person to a stranger's page; it is not declared and not passed on. (mcp.md §1.6) */
function isForm(request: Json | undefined): boolean {
  if (!isObject(request) || request['method'] !== 'elicitation/create' || !isObject(request['params'])) return false;
  const { mode } = request['params'];
  return mode === undefined || mode === 'form';
}

/** Iterative: what it looks for would overflow the stack of a recursive walk, and does that to serializers. */
function isNestedTooDeep(document: Json): boolean {
  const stack: { value: Json; depth: number }[] = [{ value: document, depth: 0 }];
  for (let next = stack.pop(); next; next = stack.pop()) {
    if (typeof next.value !== 'object' || next.value === null) continue;
    if (next.depth >= MAX_JSON_DEPTH) return true;
    for (const value of Object.values(next.value) as Json[]) stack.push({ value, depth: next.depth + 1 });
  }
  return false;
}
