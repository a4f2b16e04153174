import { HttpException } from '@nestjs/common';
import { type ErrorCode, isWopError, type JsonObject, WopError } from '@isthmus/protocol';

/** Statuses that Fastify and Node refuse requests with, as the rows of our table. */
const BY_STATUS: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  404: ['not_found', 'There is nothing at this path.'],
  405: ['method_not_allowed', 'This path does not answer that method.'],
  408: ['request_timeout', 'The request did not arrive in time.'],
  413: ['payload_too_large', 'The body is larger than limits.maxRequestBodyBytes.'],
  414: ['not_found', 'There is nothing at this path.'],
  415: ['unsupported_media_type', 'The body must be application/json in UTF-8.'],
  431: ['headers_too_large', 'The headers are larger than this host takes.'],
  503: ['service_unavailable', 'This part of the host is stopping.'],
};

/** Whatever was thrown, as an error of the table. What nobody foresaw says nothing about itself. */
export function asWopError(error: unknown): WopError {
  if (isWopError(error)) return error;
  const status = statusOf(error);
  const row = status === undefined ? undefined : BY_STATUS[status];
  if (row) return new WopError(row[0], row[1], undefined, { cause: error });
  if (status !== undefined && status >= 400 && status < 500)
    return new WopError('validation_error', 'The request is not well formed.', undefined, { cause: error });
  return new WopError('internal_error', 'Something went wrong in the host.', undefined, { cause: error });
}

function statusOf(error: unknown): number | undefined {
  if (error instanceof HttpException) return error.getStatus();
  const status = error instanceof Error && error.name === 'FastifyError' ? (error as { statusCode?: unknown }).statusCode : undefined;
  return typeof status === 'number' ? status : undefined;
}

const RETRY_AFTER_S = 1;
const CHALLENGED: ReadonlySet<ErrorCode> = new Set(['unauthenticated', 'key_expired', 'key_revoked']);

export type Problem = { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly error: WopError };
export type Refused = {
  /** The request brought a credential, good or not. */
  readonly hadCredential: boolean;
  /** Under which id the log will have it; asked for where it is needed. */
  readonly correlationId: () => string;
};

/** The error as it leaves over HTTP: with the headers its status demands and, on a 5xx, the id under which it was logged. */
export function problemOf(thrown: unknown, refused: Refused): Problem {
  const known = asWopError(thrown);
  const { status, code, message } = known;
  const retryAfter = status === 503 || status === 429 ? secondsOf(known) : undefined;
  const details: JsonObject = {
    // What services tell each other about an absence is not for the outside.
    ...(status !== 503 && known.details),
    ...(retryAfter !== undefined && { retryAfter }),
    ...(status >= 500 && { correlationId: refused.correlationId() }),
  };
  const headers = {
    ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
    ...(CHALLENGED.has(code) && {
      'www-authenticate': refused.hadCredential ? 'Bearer realm="isthmus", error="invalid_token"' : 'Bearer realm="isthmus"',
    }),
    ...(Array.isArray(details['allow']) && { allow: details['allow'].join(', ') }),
  };
  const error = new WopError(code, message, Object.keys(details).length > 0 ? details : undefined, {
    cause: known === thrown ? known.cause : thrown,
  });
  return { status, headers, error };
}

const secondsOf = ({ details }: WopError): number =>
  Math.max(RETRY_AFTER_S, Math.ceil(Number(details?.['retryAfter'] ?? RETRY_AFTER_S)) || RETRY_AFTER_S);
