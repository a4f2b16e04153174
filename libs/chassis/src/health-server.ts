import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Readiness } from './health.js';

export type HealthServer = { readonly port: number; close(): Promise<void> };

/** `GET /live`: the event loop turns. `GET /ready`: 200 or 503, with the names of the checks and how they went. */
export async function serveHealth(host: string, port: number, ready: () => Promise<Readiness>): Promise<HealthServer> {
  const answers: Readonly<Record<string, () => Promise<readonly [number, unknown]>>> = {
    '/live': async () => [200, { live: true }],
    '/ready': async () => {
      const readiness = await ready();
      return [readiness.ready ? 200 : 503, readiness];
    },
  };
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0] ?? '';
    const answer = request.method === 'GET' && Object.hasOwn(answers, path) ? answers[path] : undefined;
    const found = answer?.() ?? Promise.resolve([404, { error: 'not_found', message: 'Ask /live or /ready.' }] as const);
    found.then(
      ([status, body]) =>
        response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(JSON.stringify(body)),
      () => response.writeHead(503).end(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
