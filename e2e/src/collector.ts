import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Span = {
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
};

export type Collector = {
  /** What services need to know to send here. */
  readonly env: Record<string, string>;
  readonly spans: readonly Span[];
  /** Every request as it came, for looking for what should not be there. */
  readonly bytes: () => string;
  close(): Promise<void>;
};

type Attribute = { key: string; value: { stringValue?: string } };
type Export = {
  resourceSpans?: {
    resource: { attributes: Attribute[] };
    scopeSpans: { spans: { name: string; traceId: string; spanId: string; parentSpanId?: string }[] }[];
  }[];
};

/** The least of an OpenTelemetry collector: takes OTLP over HTTP in JSON and keeps it. */
export async function startCollector(): Promise<Collector> {
  const spans: Span[] = [];
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      bodies.push(body);
      if (request.url === '/v1/traces') spans.push(...spansOf(JSON.parse(body) as Export));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    },
    spans,
    bytes: () => bodies.join('\n'),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const spansOf = ({ resourceSpans = [] }: Export): Span[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? '';
    return scopeSpans.flatMap(({ spans }) =>
      spans.map(({ name, traceId, spanId, parentSpanId }) => ({ service, name, traceId, spanId, parentSpanId: parentSpanId || undefined })),
    );
  });
