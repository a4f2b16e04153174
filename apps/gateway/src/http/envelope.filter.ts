import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common';
import { Ids, Logger } from '@isthmus/chassis';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { jsonRpcError } from './json-rpc.js';
import { MCP_PATH, nothingAt, pathOf } from './known-paths.js';
import { problemOf } from './problem.js';

/** Everything thrown on the way of a request leaves here, in the one envelope. (error-envelope.schema.json: flat and closed) */
@Catch()
export class EnvelopeFilter implements ExceptionFilter {
  constructor(
    private readonly ids: Ids,
    private readonly logger: Logger,
  ) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const reply = http.getResponse<FastifyReply>();
    const path = pathOf(request.raw.url ?? '');
    const known = thrown instanceof HttpException && thrown.getStatus() === 404 ? nothingAt(path) : thrown;
    const { status, headers, error } = problemOf(known, {
      hadCredential: request.headers.authorization !== undefined,
      correlationId: () => this.ids.opaque(12),
    });
    if (status >= 500) this.report(request, status, error.details?.['correlationId'], error);
    if (reply.raw.headersSent) {
      // Half an answer is out already: a broken connection is the only honest rest of it.
      reply.raw.destroy();
      return;
    }
    void reply
      .code(status)
      .headers(headers)
      .header('content-type', 'application/json; charset=utf-8')
      .send(JSON.stringify(path === MCP_PATH ? jsonRpcError(error) : error.toEnvelope()));
  }

  /** The route's template, never the URL: it may hold a token. */
  private report(request: FastifyRequest, status: number, correlationId: unknown, error: Error): void {
    const facts = { method: request.method, route: request.routeOptions.url, status, correlationId, error };
    if (status === 503) this.logger.warn('a request found a part of the host out of reach', facts);
    else this.logger.error('a request failed', facts);
  }
}
