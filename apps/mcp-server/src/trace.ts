import { type Carrier, currentCarrier, runInContext } from '@isthmus/chassis';
import type { JsonObject } from '@isthmus/protocol';

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * Runs `work` in the trace that `_meta` names, in preference to the HTTP header's; a malformed one is ignored. Where both are
 * of one trace the present span stays the parent: it is nearer. (spec/authz.md §7.4 "Trace")
 */
export function inTraceOf<T>(meta: JsonObject, work: () => T): T {
  const carrier = carrierOf(meta);
  return carrier && traceIdOf(carrier.traceparent) !== traceIdOf(currentCarrier().traceparent) ? runInContext(carrier, work) : work();
}

function carrierOf({ traceparent, tracestate }: JsonObject): (Carrier & { traceparent: string }) | undefined {
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return undefined;
  return { traceparent, ...(typeof tracestate === 'string' && { tracestate }) };
}

const traceIdOf = (traceparent: string | undefined): string | undefined => TRACEPARENT.exec(traceparent ?? '')?.[1];
