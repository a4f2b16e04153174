import type { Json, JsonObject } from '@isthmus/protocol';
import { SERVER_INFO } from './revisions.js';

export type RpcId = string | number;

/** JSON-RPC codes that leave this service. The -320xx ones are MCP's own. (spec/mcp.md §1.4) */
export const CODES = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  headerMismatch: -32020,
  missingClientCapability: -32021,
  unsupportedProtocolVersion: -32022,
} as const;

/** HTTP statuses that a refusal does not choose itself. An error of a handler stays in band, at 200. */
const STATUSES: { readonly [code: number]: number } = {
  [CODES.parseError]: 400,
  [CODES.invalidRequest]: 400,
  [CODES.methodNotFound]: 404,
  [CODES.headerMismatch]: 400,
  [CODES.missingClientCapability]: 400,
  [CODES.unsupportedProtocolVersion]: 400,
};

/** An answer that is an error, as the client will see it. */
export class RpcError extends Error {
  override readonly name = 'RpcError';
  readonly status: number;
  constructor(
    readonly code: number,
    message: string,
    readonly data?: JsonObject,
    options: ErrorOptions & { status?: number } = {},
  ) {
    super(message, options);
    this.status = options.status ?? STATUSES[code] ?? 200;
  }
}

export const invalidParams = (message: string, data?: JsonObject): RpcError => new RpcError(CODES.invalidParams, message, data);

/** What a method answers: a result, or the bytes of one that were made earlier. */
export type Answer = JsonObject | Uint8Array;

export const complete = (result: JsonObject): JsonObject => ({ resultType: 'complete', ...withServerInfo(result) });
export const inputRequired = (result: JsonObject): JsonObject => ({ resultType: 'input_required', ...withServerInfo(result) });

const withServerInfo = (result: JsonObject): JsonObject => ({
  ...result,
  _meta: { ...(result['_meta'] as JsonObject | undefined), 'io.modelcontextprotocol/serverInfo': SERVER_INFO },
});

const text = new TextEncoder();
const CLOSE = text.encode('}');

/** The response to `id`; a result that is bytes already is copied as it is. */
export function encodeAnswer(id: RpcId, answer: Answer): Uint8Array {
  if (!(answer instanceof Uint8Array)) return text.encode(JSON.stringify({ jsonrpc: '2.0', id, result: answer }));
  return Buffer.concat([text.encode(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`), answer, CLOSE]);
}

/** Without an `id` where the request's could not be read: the revision's schema has it optional, not nullable. */
export function encodeError(id: RpcId | undefined, { code, message, data }: RpcError): Uint8Array {
  const error: { [key: string]: Json } = { code, message, ...(data && { data }) };
  return text.encode(JSON.stringify({ jsonrpc: '2.0', ...(id !== undefined && { id }), error }));
}
