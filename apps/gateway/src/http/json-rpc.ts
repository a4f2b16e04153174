import type { WopError } from '@isthmus/protocol';

/** A refusal of the MCP mount itself, before any replica saw the request: no request id is known yet. (spec/mcp.md §1.4) */
export function jsonRpcError(error: WopError): object {
  const code = error.status < 500 ? -32600 : -32603;
  return { jsonrpc: '2.0', id: null, error: { code, message: error.message, data: { error: error.code, ...error.details } } };
}
