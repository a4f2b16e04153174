import { applyDecorators, createParamDecorator, Delete, type ExecutionContext, Get, HttpCode, Post, Put } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { type Idempotency, routerPath, type Route as RouteRow } from '@isthmus/protocol';
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Asker } from '../auth/asker.js';

const VERBS = { GET: Get, POST: Post, PUT: Put, DELETE: Delete } as const;

/** This method answers that row of the route table: path, credential, scopes, parsing and status come from there. */
export const Route = (route: RouteRow): MethodDecorator =>
  applyDecorators(VERBS[route.method](routerPath(route)), HttpCode(route.success), RouteConfig({ route }));

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined;

/** What a request asks for, parsed by its route's schemas. */
export type Asked<R extends RouteRow = RouteRow> = {
  readonly params: Parsed<R['params']>;
  readonly query: Parsed<R['query']>;
  readonly body: Parsed<R['body']>;
  /** Only on routes that honour `Idempotency-Key`, and only when there was one. */
  readonly idempotency?: Idempotency;
};

const request = (context: ExecutionContext): FastifyRequest => context.switchToHttp().getRequest<FastifyRequest>();

export const Ask = createParamDecorator((_: unknown, context: ExecutionContext) => request(context).asked);
/** Who asks. Not on public routes. */
export const By = createParamDecorator((_: unknown, context: ExecutionContext) => request(context).asker);

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The row of the route table; absent on the MCP mount. */
    route?: RouteRow;
    /** The body is passed on as it came. */
    isRaw?: true;
  }
  interface FastifyRequest {
    asker: Asker | undefined;
    asked: Asked | undefined;
  }
}
