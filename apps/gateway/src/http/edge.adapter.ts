import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { LIMITS, WopError } from '@isthmus/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { parseJsonBody } from './json-body.js';
import { pathOf } from './known-paths.js';
import { problemOf } from './problem.js';

/** Interrupt tokens are longer than the 100 characters Fastify takes by default, and would be 404. (traps.md 21) */
const MAX_PARAM_LENGTH = 4_096;
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_MS = 75_000;

/** Fastify as the edge needs it: bounded, silent about itself, with our body parser and our envelope for what it refuses alone. */
export class EdgeAdapter extends FastifyAdapter {
  /** @param aliases other names of paths: whatever guards the path guards them, for nothing behind here sees the difference */
  constructor(aliases: Readonly<Record<string, string>> = {}) {
    super({
      rewriteUrl: ({ url = '/' }) => realUrl(url, aliases),
      bodyLimit: LIMITS.maxRequestBodyBytes,
      routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      trustProxy: false,
      logger: false,
      return503OnClosing: false,
      skipMiddie: true,
      // Node would refuse it with an empty body; the door does it in the envelope.
      http: { requireHostHeader: false },
      // Both speak before any route is found, so our filter never sees them.
      frameworkErrors: (error: Error, _request: FastifyRequest, reply: FastifyReply) => {
        const { status, headers, envelope } = refusal(error);
        void reply.code(status).headers(headers).send(envelope);
      },
      clientErrorHandler: refuseSocket,
    });
  }

  /** Ours instead of Nest's: only JSON, strictly UTF-8, and bytes as they came where a route passes them on. */
  override registerParserMiddleware(): void {
    const fastify = this.getInstance();
    fastify.removeAllContentTypeParsers();
    fastify.addContentTypeParser(
      'application/json',
      { parseAs: 'buffer' },
      (request: FastifyRequest, bytes: Buffer, done: (error: Error | null, body?: unknown) => void) => {
        try {
          refuseEncodings(request);
          done(null, request.routeOptions.config.isRaw ? bytes : parseJsonBody(bytes));
        } catch (error) {
          done(error as Error);
        }
      },
    );
  }
}

function refuseEncodings(request: FastifyRequest): void {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(request.headers['content-type'] ?? '')?.[1]?.toLowerCase();
  const encoding = request.headers['content-encoding']?.toLowerCase() ?? 'identity';
  if ((charset && charset !== 'utf-8' && charset !== 'utf8') || encoding !== 'identity') {
    throw new WopError('unsupported_media_type', 'The body must be application/json in UTF-8, and not compressed.');
  }
}

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' } as const;

function refusal(error: unknown): { status: number; headers: Record<string, string>; envelope: string } {
  const { status, headers, error: problem } = problemOf(error, { hadCredential: false, correlationId: randomUUID });
  return { status, headers: { ...headers, ...JSON_TYPE }, envelope: JSON.stringify(problem.toEnvelope()) };
}

/** What Node's parser refuses, by its code; everything else is not HTTP at all. */
function realUrl(url: string, aliases: Readonly<Record<string, string>>): string {
  const path = pathOf(url);
  const real = Object.hasOwn(aliases, path) ? aliases[path] : undefined;
  return real === undefined ? url : real + url.slice(path.length);
}

const SOCKET_ERRORS: Readonly<Record<string, () => WopError>> = {
  HPE_HEADER_OVERFLOW: () => new WopError('headers_too_large', 'The headers are larger than this host takes.'),
  ERR_HTTP_REQUEST_TIMEOUT: () => new WopError('request_timeout', 'The request did not arrive in time.'),
};

function refuseSocket(error: Error & { code?: string }, socket: Socket): void {
  // Node's own guard: what an answer under way is followed by on its connection would be read as part of it.
  const isAnswering = (socket as Socket & { _httpMessage?: { headersSent: boolean } })._httpMessage?.headersSent === true;
  if (!socket.writable || error.code === 'ECONNRESET' || isAnswering) {
    socket.destroy();
    return;
  }
  const problem = SOCKET_ERRORS[error.code ?? '']?.() ?? new WopError('validation_error', 'The request is not well-formed HTTP.');
  const { status, headers, envelope } = refusal(problem);
  const head = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(envelope)), connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  socket.end(`HTTP/1.1 ${status} ${REASONS[status] ?? 'Bad Request'}\r\n${head.join('\r\n')}\r\n\r\n${envelope}`);
}

const REASONS: Readonly<Record<number, string>> = { 408: 'Request Timeout', 431: 'Request Header Fields Too Large' };
