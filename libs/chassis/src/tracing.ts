import { type Attributes, context, propagation, type Span, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';

/** Trace context as it travels: NATS headers, MCP `_meta`, a column of the run. (W3C Trace Context) */
export type Carrier = { readonly traceparent?: string; readonly tracestate?: string };

let isInstalled = false;

/** Trace context goes on through this process whether or not anything is exported. May be called often. */
export function installPropagation(): void {
  if (isInstalled) return;
  isInstalled = true;
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
}

/** The trace context of what runs now; empty outside of any trace. */
export function currentCarrier(): Carrier {
  const carrier: { traceparent?: string; tracestate?: string } = {};
  propagation.inject(context.active(), carrier);
  return carrier;
}

/** Runs `work` as a part of the trace that `carrier` names; an empty or unreadable carrier starts outside of any trace. */
export function runInContext<T>(carrier: Carrier, work: () => T): T {
  return context.with(propagation.extract(trace.deleteSpan(context.active()), carrier), work);
}

export type SpanOptions = { readonly kind?: keyof typeof SpanKind };

/**
 * Runs `work` inside a span. Attributes are ids, names, counts and codes: never content, never a URL with a token in it. Of an
 * error only its code (or class) is kept, for messages may quote what they speak of.
 */
export async function withSpan<T>(
  name: string,
  attributes: Attributes,
  work: (span: Span) => Promise<T> | T,
  options: SpanOptions = {},
): Promise<T> {
  const span = spanOrRoot(trace.getTracer('isthmus').startSpan(name, { attributes, kind: SpanKind[options.kind ?? 'INTERNAL'] }));
  try {
    return await context.with(trace.setSpan(context.active(), span), () => work(span));
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR });
    span.setAttribute('error.type', nameOf(error));
    throw error;
  } finally {
    span.end();
  }
}

/** Without an exporter nobody mints ids, yet a trace that begins here should still be one trace further on and in the logs. */
export const spanOrRoot = (span: Span): Span =>
  trace.isSpanContextValid(span.spanContext())
    ? span
    : trace.wrapSpanContext({
        traceId: hex(16),
        spanId: hex(8),
        traceFlags: TraceFlags.NONE,
      });

/** Ids need to be unlike each other, not unguessable: as OpenTelemetry's own generator, and ten times cheaper than the system's. */
function hex(bytes: number): string {
  let text = '';
  for (let byte = 0; byte < bytes; byte += 4) text += ((Math.random() * 0x1_0000_0000) >>> 0).toString(16).padStart(8, '0');
  return text;
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const { code } = error as Error & { code?: unknown };
  return typeof code === 'string' ? code : error.name;
}
