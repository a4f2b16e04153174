import { jsonProblem, type JsonObject, LIMITS } from '@isthmus/protocol';
import { CODES, invalidParams, type RpcId, RpcError } from './rpc.js';

export type Message =
  | { readonly is: 'request'; readonly id: RpcId; readonly method: string; readonly params: JsonObject }
  | { readonly is: 'notification'; readonly method: string; readonly params: JsonObject };

/** A refusal that still knows which request it refuses. */
export class Refused extends Error {
  constructor(
    readonly id: RpcId | undefined,
    readonly error: RpcError,
  ) {
    super(error.message);
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The one JSON-RPC message in a body. Batches left MCP with 2025-06-18. (spec/mcp.md §1.1) */
export function readMessage(body: Uint8Array): Message {
  const json = parse(body);
  if (Array.isArray(json)) throw invalid(undefined, 'JSON-RPC batches are not a part of this revision.');
  if (!isObject(json)) throw invalid(undefined, 'The body is not a JSON-RPC message.');
  const id = isId(json['id']) ? json['id'] : undefined;
  if ('result' in json || 'error' in json) throw invalid(id, 'Responses cannot be posted here.');
  const { method, params = {} } = json;
  if (json['jsonrpc'] !== '2.0' || typeof method !== 'string' || !isObject(params))
    throw invalid(id, 'The body is not a JSON-RPC message.');
  const problem = jsonProblem(params);
  if (problem) throw new Refused(id, invalidParams(`The params are not acceptable: ${problem}.`));
  if (id !== undefined) return { is: 'request', id, method, params };
  if ('id' in json) throw invalid(undefined, 'The id of a request is a string or an integer.');
  return { is: 'notification', method, params };
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(body));
  } catch {
    throw new Refused(undefined, new RpcError(CODES.parseError, 'The body is not valid JSON.'));
  }
}

const invalid = (id: RpcId | undefined, message: string): Refused => new Refused(id, new RpcError(CODES.invalidRequest, message));

export const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);
const isId = (value: unknown): value is RpcId => typeof value === 'string' || Number.isSafeInteger(value);

/** The bytes of a body that arrives in pieces, none of which is kept once it is too long. */
export async function collect(
  body: Uint8Array | AsyncIterable<Uint8Array> | undefined,
  limit: number = LIMITS.maxRequestBodyBytes,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of body instanceof Uint8Array ? [body] : (body ?? [])) {
    size += piece.length;
    if (size > limit)
      throw new Refused(
        undefined,
        new RpcError(CODES.invalidRequest, `The body is larger than ${limit} bytes.`, undefined, { status: 413 }),
      );
    pieces.push(piece);
  }
  return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces);
}
