import { type Egress, egressDenied } from '@isthmus/egress';
import { WopError } from '@isthmus/protocol';
import { type Agent, type Dispatcher, fetch, Response } from 'undici';
import { byteBound } from './byte-bound.js';
import { currentExchange, type Exchange } from './exchange.js';

/** The envelope around a result, and error bodies. */
const SPARE_BYTES = 64 * 1_024;

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<globalThis.Response>;

/**
 * `fetch` as remote MCP servers get it: through the egress, without redirects, with a bounded answer, and not beyond what
 * the exchange it belongs to may still do.
 */
export function remoteFetch(egress: Egress, maxResultBytes: number): Fetch {
  return async (url, init = {}) => {
    // A server may offer a standing stream for news between calls. We do without: one socket per mount for hints that only
    // refresh a list which has an age limit anyway. What resumes the stream of a call is let through.
    if (init.method === 'GET' && !new Headers(init.headers).has('last-event-id')) return as405();
    const exchange = currentExchange();
    exchange?.spend();
    const response = await fetch(url, {
      ...(init as Parameters<typeof fetch>[1]),
      redirect: 'manual',
      dispatcher: exchange ? guarded(egress.agent, exchange) : egress.agent,
    });
    if (isRedirect(response.status)) {
      await response.body?.cancel();
      throw egressDenied(new URL(url).hostname, 'redirect');
    }
    return bounded(response, maxResultBytes, exchange) as unknown as globalThis.Response;
  };
}

const as405 = (): globalThis.Response => new Response(null, { status: 405 }) as unknown as globalThis.Response;

const isRedirect = (status: number): boolean => status >= 300 && status < 400 && status !== 304;

/** Asks the exchange once more when a socket is ready: connecting may have taken longer than the asker's lease lasts. */
const guarded = (agent: Agent, exchange: Exchange): Dispatcher =>
  agent.compose((dispatch) => (options, handler) => dispatch(options, writeGuard(handler, exchange)));

type Handler = Dispatcher.DispatchHandler;

const writeGuard = (handler: Handler, exchange: Exchange): Handler => ({
  onRequestStart(controller, context) {
    const refusal = exchange.beforeWrite();
    if (refusal) controller.abort(refusal);
    else handler.onRequestStart?.(controller, context);
  },
  onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
  onResponseStart: (...args) => handler.onResponseStart?.(...args),
  onResponseData: (...args) => handler.onResponseData?.(...args),
  onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
  onResponseError: (...args) => handler.onResponseError?.(...args),
});

/** A body whose length is known, small and not compressed needs no counting. */
function bounded(response: Response, maxResultBytes: number, exchange: Exchange | undefined): Response {
  if (!response.body) return response;
  const limit = maxResultBytes + SPARE_BYTES;
  const declared = response.headers.get('content-encoding') ? undefined : Number(response.headers.get('content-length') ?? Number.NaN);
  if (declared !== undefined && declared <= limit) return response;
  const isEventStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
  const body = response.body.pipeThrough(
    byteBound(limit, isEventStream, () => {
      const excess = resultTooLarge(maxResultBytes);
      // The SDK reports a broken event stream to nobody who waits: the exchange is told directly.
      exchange?.stop(excess);
      return excess;
    }),
  );
  return new Response(body, { status: response.status, statusText: response.statusText, headers: response.headers });
}

export const resultTooLarge = (limitBytes: number): WopError =>
  new WopError('mcp_tool_invocation_failed', 'The answer of the remote MCP server is larger than this host takes.', {
    reason: 'result_too_large',
    limitBytes,
  });
