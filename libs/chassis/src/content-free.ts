import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace-base';

/** Attributes that libraries set and that quote what they carry: addresses with tokens or queries in them, SQL, messages. */
const QUOTING: readonly string[] = [
  'url.full',
  'url.path',
  'url.query',
  'http.url',
  'http.target',
  'db.statement',
  'db.query.text',
  'exception.message',
  'exception.stacktrace',
  'user_agent.original',
];

/**
 * Takes content out of spans before they are handed on. Applied to every span, so that no instrumentation has to be trusted to
 * know which of our paths hold tokens. (execution.md, observability: attributes are content-free)
 */
export const contentFree = (next: SpanProcessor): SpanProcessor => ({
  onStart: (span, parent) => next.onStart(span, parent),
  onEnd: (span) => {
    strip(span);
    next.onEnd(span);
  },
  forceFlush: () => next.forceFlush(),
  shutdown: () => next.shutdown(),
});

function strip(span: ReadableSpan): void {
  for (const bag of [span.attributes, ...span.events.map((event) => event.attributes ?? {})]) for (const name of QUOTING) delete bag[name];
  delete span.status.message;
}
