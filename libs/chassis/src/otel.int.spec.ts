import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

type Received = { headers: IncomingHttpHeaders; at: number; text: string };
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

/** Runs until its span must have left by itself; telemetry is not flushed. */
const SCRIPT = `
  const { runInContext, withSpan } = await import('@isthmus/chassis');
  await runInContext({ traceparent: '${traceparent}' }, () => withSpan('outer', { 'run.id': 'r1' }, () =>
    fetch(process.argv[1] + '/somewhere?token=sk-live-abcdef').then((response) => response.text())));
  setTimeout(() => {}, 1_000);
`;

describe('the preload', () => {
  const received: Received[] = [];
  const collector = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    if (request.url === '/v1/traces') received.push({ headers: request.headers, at: performance.now(), text });
    response.end('{}');
  });
  let endpoint = '';

  beforeEach(async () => {
    received.length = 0;
    collector.listen(0, '127.0.0.1');
    await once(collector, 'listening');
    endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  });
  afterEach(() => new Promise((resolve) => collector.close(resolve)));

  async function run(environment: Record<string, string>): Promise<string> {
    const child = spawn(process.execPath, ['--import', '@isthmus/chassis/otel', '--input-type=module', '--eval', SCRIPT, endpoint], {
      cwd: new URL('../../..', import.meta.url),
      env: { PATH: process.env['PATH'], SERVICE_NAME: 'engine', ...environment },
      stdio: ['ignore', 'inherit', 'pipe'],
    });
    let complaints = '';
    child.stderr.on('data', (chunk) => (complaints += String(chunk)));
    const [code] = await once(child, 'close');
    expect(code).toBe(0);
    return complaints;
  }

  it('sends spans by JSON within a second: named, in the trace that came in, free of addresses', async () => {
    expect(
      await run({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_METRICS_EXPORTER: 'none' }),
    ).toBe('');
    const [first] = received;
    expect(first?.headers['content-type']).toBe('application/json');
    const { resourceSpans } = JSON.parse(first?.text ?? '') as {
      resourceSpans: { scopeSpans: { spans: { name: string; traceId: string }[] }[] }[];
    };
    const spans = resourceSpans.flatMap((resource) => resource.scopeSpans.flatMap((scope) => scope.spans));
    expect(spans.map(({ name }) => name).sort()).toEqual(['GET', 'outer']);
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([traceparent.slice(3, 35)]));
    expect(first?.text).toContain('"engine"');
    expect(first?.text).not.toMatch(/sk-live|somewhere/);
  });

  it('sends protobuf unless told otherwise', async () => {
    await run({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_METRICS_EXPORTER: 'none' });
    expect(received[0]?.headers['content-type']).toBe('application/x-protobuf');
  });

  it.each<Record<string, string>>([{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }, { OTEL_EXPORTER_OTLP_ENDPOINT: '' }])(
    'sends nothing with %j',
    async (environment) => {
      await run({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...environment });
      expect(received).toEqual([]);
    },
  );
});
