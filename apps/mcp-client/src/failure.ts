import { InsufficientScopeError, ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client';
import { isWopError, maskCredentials, WopError } from '@isthmus/protocol';
import type { Exchange } from './exchange.js';
import { disconnected } from './exchange.js';
import { VersionRefusal } from './version-policy.js';

const RPC = { methodNotFound: -32601, invalidParams: -32602, headerMismatch: -32020, unsupportedVersion: -32022 } as const;

/** What went wrong with a remote server, out of what the SDK and undici throw. */
export type Failure =
  /** Ours: a deadline, a refused address, a bound. */
  | { readonly is: 'ours'; readonly error: WopError }
  | { readonly is: 'version'; readonly supported: readonly string[] }
  /** A server with sessions does not know ours any more. It refused the request, so nothing was done. */
  | { readonly is: 'session_lost' }
  /** The arguments that a tool wants in headers have changed since it was listed. Refused as well. */
  | { readonly is: 'header_mismatch' }
  | { readonly is: 'rpc'; readonly code: number; readonly message: string }
  | { readonly is: 'http'; readonly status: number }
  /** An answer that is none: not JSON, no MCP result, of a kind we did not offer to take. */
  | { readonly is: 'invalid_answer' }
  | { readonly is: 'transport'; readonly cause: unknown };

/** Data of the error with which we end a request whose stream broke off; known by identity, which no peer can send. */
export const STREAM_ENDED = Object.freeze({ reason: 'stream_ended' });

/** A refused address or an answer that grew too large is found below what the SDK made of it. */
function oursIn(error: unknown): WopError | undefined {
  for (let next: unknown = error, depth = 0; next instanceof Error && depth < 8; next = next.cause, depth += 1)
    if (isWopError(next)) return next;
  return undefined;
}

type RpcError = { readonly code: number; readonly message: string; readonly data?: unknown };

/** The JSON-RPC error in the body of an HTTP error, if there is one. */
function rpcErrorIn(error: SdkHttpError): RpcError | undefined {
  try {
    const { error: found } = JSON.parse(String(error.data['text'])) as { error?: { code?: unknown; message?: unknown; data?: unknown } };
    return typeof found?.code === 'number' ? { code: found.code, message: String(found.message ?? ''), data: found.data } : undefined;
  } catch {
    return undefined;
  }
}

const supportedIn = (data: unknown): unknown =>
  typeof data === 'object' && data !== null ? (data as { supported?: unknown }).supported : undefined;

/** Did the server refuse the era or the revision that was tried? Anything that may pass (no answer, 5xx, 401) did not. */
export function refusalIn(error: unknown): VersionRefusal | undefined {
  if (error instanceof VersionRefusal) return error;
  const rpc: RpcError | undefined = error instanceof SdkHttpError ? rpcErrorIn(error) : error instanceof ProtocolError ? error : undefined;
  if (rpc?.code === RPC.unsupportedVersion) return new VersionRefusal(supportedIn(rpc.data), { cause: error });
  // `initialize` is unknown to a server without handshakes.
  if (rpc?.code === RPC.methodNotFound) return new VersionRefusal([], { cause: error });
  const isVerdict = error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed && error.cause === undefined;
  return isVerdict && !(error instanceof SdkHttpError) ? new VersionRefusal([], { cause: error }) : undefined;
}

/** Sessions end by 404 (MCP 2025-11-25); servers that keep none of that name answer 400 with a code of the transport's own. */
const isLostSession = (error: SdkHttpError): boolean =>
  error.status === 404 || (error.status === 400 && [-32000, -32001].includes(rpcErrorIn(error)?.code ?? 0));

const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 425, 429]);
const INVALID_ANSWERS: ReadonlySet<unknown> = new Set([
  SdkErrorCode.InvalidResult,
  SdkErrorCode.UnsupportedResultType,
  SdkErrorCode.ClientHttpUnexpectedContent,
]);

export function classify(error: unknown, exchange: Exchange, hasSession: boolean): Failure {
  if (exchange.stopping.aborted) return { is: 'ours', error: exchange.stopping.reason as WopError };
  const ours = oursIn(error);
  if (ours) return { is: 'ours', error: ours };
  if (error instanceof VersionRefusal) return { is: 'version', supported: error.supported };
  if (error instanceof SdkHttpError) return ofHttp(error, hasSession);
  if (error instanceof InsufficientScopeError) return { is: 'http', status: 403 };
  if (error instanceof ProtocolError) return error.data === STREAM_ENDED ? { is: 'transport', cause: error } : ofRpc(error);
  if (error instanceof SyntaxError || (error instanceof SdkError && INVALID_ANSWERS.has(error.code)) || isZodError(error))
    return { is: 'invalid_answer' };
  return { is: 'transport', cause: error };
}

function ofHttp(error: SdkHttpError, hasSession: boolean): Failure {
  if (hasSession && isLostSession(error)) return { is: 'session_lost' };
  if (error.status >= 500 || PASSING_STATUSES.has(error.status)) return { is: 'transport', cause: error };
  const rpc = rpcErrorIn(error);
  return rpc ? ofRpc(rpc) : { is: 'http', status: error.status };
}

function ofRpc({ code, message, data }: RpcError): Failure {
  if (code === RPC.unsupportedVersion) return { is: 'version', supported: new VersionRefusal(supportedIn(data)).supported };
  if (code === RPC.headerMismatch) return { is: 'header_mismatch' };
  return { is: 'rpc', code, message };
}

const isZodError = (error: unknown): boolean => error instanceof Error && (error.name === 'ZodError' || error.name === '$ZodError');

const MAX_TEXT = 300;

/** A peer's words for people: one line, bounded, without what looks like a credential. (families.md §1.2 rule 8) */
export function peerText(text: string): string {
  const line = text.slice(0, 4 * MAX_TEXT).replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ');
  // Through UTF-8, which has no halves of surrogate pairs.
  return Buffer.from(maskCredentials(line).slice(0, MAX_TEXT)).toString();
}

export type Recovery = 'reconnect' | 'relist';

type Circumstances = {
  /** The connection was made for this very exchange: another would fare no better. */
  readonly isFresh: boolean;
  readonly isSent: boolean;
  readonly mayRepeat: boolean;
  readonly allowedRevisions: readonly string[];
};

/**
 * What can be done about a failure without anyone noticing. A request that was refused, or never left, may be sent again; one
 * that may have been received only where a repeat is allowed.
 */
export function recoveryFrom(failure: Failure, { isFresh, isSent, mayRepeat, allowedRevisions }: Circumstances): Recovery | undefined {
  switch (failure.is) {
    case 'session_lost':
      return 'reconnect';
    case 'version':
      return failure.supported.some((revision) => allowedRevisions.includes(revision)) ? 'reconnect' : undefined;
    case 'header_mismatch':
      return 'relist';
    case 'transport':
      return (isSent ? mayRepeat : !isFresh) ? 'reconnect' : undefined;
    default:
      return undefined;
  }
}

/** What the asker is told. `sent` in the details of a disconnect: the call may have been received, its outcome is unknown. */
export const toWopError = (failure: Exclude<Failure, { is: 'version' }>, sent: boolean): WopError => {
  switch (failure.is) {
    case 'ours':
      return failure.error;
    case 'transport':
      return disconnected('The remote MCP server could not be reached.', { reason: 'transport', sent }, failure.cause);
    case 'session_lost':
      return disconnected('The remote MCP server keeps losing the session.', { reason: 'session_lost', sent: false });
    case 'header_mismatch':
      return invocationFailed('refused the headers of the call', { reason: 'header_mismatch', code: RPC.headerMismatch });
    case 'rpc':
      return invocationFailed(`answered with error ${failure.code}: ${peerText(failure.message)}`, {
        reason: 'rpc_error',
        code: failure.code,
      });
    case 'http':
      return invocationFailed(`answered with HTTP status ${failure.status}`, { reason: 'http_status', status: failure.status });
    case 'invalid_answer':
      return invocationFailed('gave an answer that is not valid MCP', { reason: 'invalid_answer' });
  }
};

export const invocationFailed = (what: string, details: { reason: string; code?: number; status?: number }): WopError =>
  new WopError('mcp_tool_invocation_failed', `The remote MCP server ${what}.`, details);

export const isInvalidParams = (failure: Failure): boolean => failure.is === 'rpc' && failure.code === RPC.invalidParams;
