import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { trace } from '@opentelemetry/api';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { fastify } from 'fastify';
import { contentFree } from './content-free.js';
import { traceRequests } from './http-tracing.js';
import { currentCarrier, installPropagation, withSpan } from './tracing.js';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

describe('requests at the edge', () => {
  const spans = new InMemorySpanExporter();
  const edge = fastify();
  let baseUrl = '';

  beforeAll(async () => {
    installPropagation();
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [contentFree(new SimpleSpanProcessor(spans))] }));
    traceRequests(edge);
    edge.post('/v1/interrupts/:token', async () =>
      withSpan('inside', { 'url.full': 'http://host/v1/interrupts/secret' }, () => currentCarrier()),
    );
    edge.get('/broken', async () => {
      throw new Error('sk-live-abcdef');
    });
    baseUrl = await edge.listen({ port: 0, host: '127.0.0.1' });
  });
  afterAll(() => edge.close());

  it("stay in the caller's trace after the body has been read, and are named by template", async () => {
    const response = await fetch(`${baseUrl}/v1/interrupts/secret?also=secret`, {
      method: 'POST',
      headers: { traceparent, 'content-type': 'application/json' },
      body: JSON.stringify({ some: 'body' }),
    });
    const inside = (await response.json()) as { traceparent: string };
    expect(inside.traceparent.slice(3, 35)).toBe(traceparent.slice(3, 35));

    const [child, server] = spans.getFinishedSpans();
    expect(server?.name).toBe('POST /v1/interrupts/:token');
    expect(server?.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/v1/interrupts/:token',
      'http.response.status_code': 200,
    });
    expect(server?.parentSpanContext?.spanId).toBe(traceparent.slice(36, 52));
    expect(child?.parentSpanContext?.spanId).toBe(server?.spanContext().spanId);
  });

  it('stay in it when the body comes later than the headers', async () => {
    const arrived = new Promise<void>((resolve) => edge.server.once('request', () => resolve()));
    const sending = request(`${baseUrl}/v1/interrupts/secret`, {
      method: 'POST',
      headers: { traceparent, 'content-type': 'application/json', 'content-length': 16 },
    });
    sending.flushHeaders();
    await arrived;
    sending.write('{"some":');
    await new Promise((resolve) => setImmediate(resolve));
    sending.end(' "body"}');
    const [response] = (await once(sending, 'response')) as [IncomingMessage];
    const text = (await response.toArray()).join('');
    expect((JSON.parse(text) as { traceparent: string }).traceparent.slice(3, 35)).toBe(traceparent.slice(3, 35));
  });

  it('leave no address, query or message in a span', async () => {
    spans.reset();
    await fetch(`${baseUrl}/broken?token=secret`);
    await fetch(`${baseUrl}/v1/interrupts/secret`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
    const all = spans.getFinishedSpans();
    expect(all.map(({ name }) => name)).toEqual(['GET /broken', 'inside', 'POST /v1/interrupts/:token']);
    const told = JSON.stringify(all.map(({ name, attributes, events, status }) => ({ name, attributes, events, status })));
    expect(told).not.toMatch(/secret|sk-live/);
  });
});
