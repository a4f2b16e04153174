import { isWopError, type WopError } from '@isthmus/protocol';
import { CODES, RpcError } from './rpc.js';

/**
 * Whatever was thrown, as the client may see it. A part of the host that is out of reach is 503, never -32602 and never an
 * empty list; what another part refused keeps its code as the reason. (rulings "MCP mount")
 */
export function toRpcError(error: unknown): RpcError {
  if (error instanceof RpcError) return error;
  if (!isWopError(error)) return new RpcError(CODES.internalError, 'The request could not be answered.', undefined, { cause: error });
  if (error.status === 503) return new RpcError(CODES.internalError, error.message, reasonOf(error), { status: 503, cause: error });
  if (error.status >= 500)
    return new RpcError(CODES.internalError, 'The request could not be answered.', reasonOf(error), { cause: error });
  return new RpcError(error.retriable ? CODES.internalError : CODES.invalidParams, error.message, reasonOf(error), { cause: error });
}

const reasonOf = (error: WopError) => ({ reason: error.code, ...(error.retriable && { retriable: true }) });
