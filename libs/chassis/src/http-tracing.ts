import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { spanOrRoot } from './tracing.js';

type Request = {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly routeOptions: { readonly url?: string | undefined };
};
type Reply = { readonly raw: ServerResponse };
type Hook = (request: Request, reply: Reply, done: () => void) => void;
/** What we need of a Fastify instance. */
type Edge = { addHook(name: 'onRequest', hook: Hook): unknown };

/**
 * One server span per request, as a part of the caller's trace when it brought one. It is named after the route's template and
 * holds no address, for addresses hold tokens.
 */
export function traceRequests(edge: Edge): void {
  edge.addHook('onRequest', (request, reply, done) => {
    const incoming = propagation.extract(ROOT_CONTEXT, request.headers);
    const span = spanOrRoot(trace.getTracer('isthmus').startSpan(request.method, { kind: SpanKind.SERVER }, incoming));
    reply.raw.once('close', () => {
      const route = request.routeOptions.url ?? 'unknown';
      const status = reply.raw.statusCode;
      span.updateName(`${request.method} ${route}`);
      span.setAttributes({ 'http.request.method': request.method, 'http.route': route, 'http.response.status_code': status });
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    });
    // Fastify carries this context over the reading of the body.
    context.with(trace.setSpan(incoming, span), done);
  });
}
