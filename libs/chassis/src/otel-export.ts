import { metrics, trace } from '@opentelemetry/api';
import { registerInstrumentations } from '@opentelemetry/instrumentation';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader, type PushMetricExporter } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Telemetry } from './config.js';
import { contentFree } from './content-free.js';
import { onTelemetryStop } from './telemetry.js';

/** The exporters read their endpoint, headers and timeout from the standard variables. */
const SPANS: Readonly<Record<string, () => Promise<SpanExporter>>> = {
  'http/protobuf': async () => new (await import('@opentelemetry/exporter-trace-otlp-proto')).OTLPTraceExporter(),
  'http/json': async () => new (await import('@opentelemetry/exporter-trace-otlp-http')).OTLPTraceExporter(),
};
const METRICS: Readonly<Record<string, () => Promise<PushMetricExporter>>> = {
  'http/protobuf': async () => new (await import('@opentelemetry/exporter-metrics-otlp-proto')).OTLPMetricExporter(),
  'http/json': async () => new (await import('@opentelemetry/exporter-metrics-otlp-http')).OTLPMetricExporter(),
};

/**
 * Starts what is exported, from the parts of the SDK: the bundle of all of them (sdk-node) costs every process tens of
 * megabytes for exporters that nobody here uses. The exporters speak node:http, which is not instrumented, so that an export
 * never makes a span.
 */
export async function startExport(telemetry: Telemetry): Promise<void> {
  const resource = resourceFromAttributes({
    'service.name': telemetry.service,
    ...(telemetry.instance && { 'service.instance.id': telemetry.instance }),
  });
  const stops: (() => Promise<void>)[] = [];
  if (telemetry.traces) {
    const exporter = await choose(SPANS, telemetry.traces.protocol);
    const batches = new BatchSpanProcessor(exporter, { scheduledDelayMillis: telemetry.traces.delayMs });
    const provider = new BasicTracerProvider({ resource, spanProcessors: [contentFree(batches)] });
    trace.setGlobalTracerProvider(provider);
    registerInstrumentations({
      instrumentations: [new PgInstrumentation({ requireParentSpan: true }), new UndiciInstrumentation({ requireParentforSpans: true })],
    });
    stops.push(() => provider.shutdown());
  }
  if (telemetry.metrics) {
    const exporter = await choose(METRICS, telemetry.metrics.protocol);
    const reader = new PeriodicExportingMetricReader({
      exporter,
      exportIntervalMillis: telemetry.metrics.intervalMs,
      exportTimeoutMillis: telemetry.metrics.intervalMs,
    });
    const provider = new MeterProvider({ resource, readers: [reader] });
    metrics.setGlobalMeterProvider(provider);
    stops.push(() => provider.shutdown());
  }
  onTelemetryStop(async () => {
    await Promise.allSettled(stops.map((stop) => stop()));
  });
}

function choose<T>(exporters: Readonly<Record<string, () => Promise<T>>>, protocol: string): Promise<T> {
  const make = Object.hasOwn(exporters, protocol) ? exporters[protocol] : undefined;
  if (!make) throw new Error(`OTEL_EXPORTER_OTLP_PROTOCOL must be one of ${Object.keys(exporters).join(', ')}.`);
  return make();
}
