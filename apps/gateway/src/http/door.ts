import { Inject, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { CONFIG, Logger, traceRequests } from '@isthmus/chassis';
import { AuditTrail } from '@isthmus/messaging';
import { type Route, WopError } from '@isthmus/protocol';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Asker } from '../auth/asker.js';
import { bearerToken } from '../auth/bearer.js';
import { Credentials } from '../auth/credentials.js';
import type { Config } from '../config.js';
import { mayAsk } from '../mcp/allowed-origin.js';
import { ask } from './ask.js';
import { doubledHeader } from './header-rules.js';
import { MCP_PATH, methodsOf, nothingAt, pathOf } from './known-paths.js';

/**
 * What every request passes before its handler, in this order: sound headers, a path that exists, a credential, its scopes; only
 * then the body is read, and parsed by the route's schemas. (traps.md 21; authz.md §15 rows 1 to 14)
 */
@Injectable()
export class Door implements OnModuleInit, OnModuleDestroy {
  constructor(
    private readonly host: HttpAdapterHost,
    private readonly credentials: Credentials,
    private readonly audit: AuditTrail,
    private readonly logger: Logger,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  onModuleInit(): void {
    const fastify = this.fastify;
    fastify.decorateRequest('asker', undefined);
    fastify.decorateRequest('asked', undefined);
    // An expectation nobody knows may be ignored; Node would refuse it outside of the envelope. (RFC 9110 §10.1.1)
    fastify.server.on('checkExpectation', (request, response) => fastify.server.emit('request', request, response));
    traceRequests(fastify);
    fastify.addHook('onRequest', (request, reply) => this.admit(request, reply));
    fastify.addHook('onResponse', (request, reply, done) => {
      const facts = {
        method: request.method,
        route: request.routeOptions.url,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime),
      };
      this.logger.debug('answered', facts);
      done();
    });
    fastify.addHook('preHandler', async (request) => {
      const { route } = request.routeOptions.config;
      if (route)
        request.asked = ask(route, { params: request.params, query: request.query, body: request.body, idempotencyKey: keyOf(request) });
    });
  }

  /** Nobody comes in any more, and who is inside gets an answer, while there still is a bus to get it over. */
  async onModuleDestroy(): Promise<void> {
    await this.fastify.close();
  }

  private get fastify(): FastifyInstance {
    return this.host.httpAdapter.getInstance<FastifyInstance>();
  }

  private async admit(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const path = pathOf(request.raw.url ?? '');
    const isMcp = path === MCP_PATH;
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1')
      throw new WopError('validation_error', 'The header Host is missing.');
    // Before anything else is told: a page of another origin must not even learn which methods exist.
    if (isMcp && !mayAsk(request.headers, this.config))
      throw new WopError('forbidden', 'Requests from this Host or Origin are not served here.');
    const doubled = doubledHeader(request.raw.rawHeaders);
    if (doubled) throw new WopError('validation_error', `The header ${doubled} stands twice, or holds two values.`);
    if (request.is404) return this.refusePath(request.method, path, reply);

    const { route } = request.routeOptions.config;
    if (route?.access === 'public') return undefined;
    const asker = await this.credentials.asker(bearerToken(request.headers.authorization));
    request.asker = asker;
    if (route) this.checkScopes(asker, route);
    return undefined;
  }

  private refusePath(method: string, path: string, reply: FastifyReply): FastifyReply {
    const methods = method === 'OPTIONS' ? methodsOf(path) : undefined;
    if (!methods) throw nothingAt(path);
    return reply
      .code(204)
      .header('allow', [...methods, 'OPTIONS'].join(', '))
      .send();
  }

  private checkScopes({ caller }: Asker, route: Route): void {
    const missing = (route.access as readonly string[]).filter((scope) => !(caller.scopes as readonly string[]).includes(scope));
    if (missing.length === 0) return;
    const scopeRequired = missing.join(' ');
    this.audit.denied(caller, scopeRequired, `${route.method} ${route.path}`, 'scope-missing');
    throw new WopError('forbidden', `This credential lacks the scope ${missing.join(' and ')}.`, { scopeRequired });
  }
}

/** Repeated ones never get here. */
const keyOf = (request: FastifyRequest): string | undefined => request.headers['idempotency-key'] as string | undefined;
