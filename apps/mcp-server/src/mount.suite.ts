import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Config as BaseConfig } from './config.js';
import { readConfig } from '@isthmus/chassis';
import { openExchange } from '@isthmus/messaging';
import { type Caller, isWopError } from '@isthmus/protocol';
import {
  bootService,
  type BootedService,
  callerOf,
  type PassportIssuer,
  passportIssuer,
  testConnection,
  type TestDatabase,
  testDatabase,
  testNats,
} from '@isthmus/testing';
import type { NatsConnection } from '@nats-io/transport-node';
import { AppModule } from './app.module.js';
import { Config } from './config.js';
import { TestEngine } from './engine.suite.js';

/** The mount as a client sees it: replicas of mcp-server behind the tunnel, and in front of it the least that HTTP needs. */
export type TestMount = {
  readonly url: URL;
  readonly engine: TestEngine;
  readonly connection: NatsConnection;
  readonly issuer: PassportIssuer;
  readonly database: TestDatabase;
  /** From now on requests go to this pool. */
  use(pool: string): void;
  /** From now on requests come from `caller`. */
  as(caller: Caller, options?: { expiresInMs?: number }): void;
  replica(settings?: Partial<Record<keyof BaseConfig, string>>): Promise<BootedService>;
  stop(): Promise<void>;
};

export async function startMount(): Promise<TestMount> {
  const connection = await testConnection();
  const issuer = await passportIssuer(connection);
  const engine = await new TestEngine(connection, (caller) => issuer.passport(caller)).start();
  const database = await testDatabase();
  let pool = 'default';
  const replicas: BootedService[] = [];
  let passport = issuer.passport(callerOf());
  const server = createServer((request, response) => {
    const gone = new AbortController();
    response.on('close', () => {
      if (!response.writableFinished) gone.abort(new Error('client gone'));
    });
    const forward = async (): Promise<void> => {
      const pieces: Buffer[] = [];
      for await (const piece of request) pieces.push(piece as Buffer);
      const headers = Object.entries(request.headersDistinct).flatMap(([name, values]) =>
        (values ?? []).map((value): [string, string] => [name, value]),
      );
      const { method = '', url = '' } = request;
      const reply = await openExchange(connection, pool, {
        method,
        url,
        headers,
        body: Buffer.concat(pieces),
        passport: await passport,
        signal: gone.signal,
      });
      response.writeHead(reply.status, Object.fromEntries(reply.headers));
      for await (const piece of reply.body) response.write(piece);
      response.end();
    };
    forward().catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(isWopError(error) ? error.status : 500);
      response.end(JSON.stringify({ error: String(error) }));
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`),
    engine,
    connection,
    issuer,
    database,
    use: (name) => {
      pool = name;
    },
    as: (caller, options) => {
      passport = issuer.passport(caller, options);
    },
    async replica(settings = {}) {
      const config = readConfig(Config, {
        SERVICE_NAME: 'mcp-server',
        NATS_URL: testNats(),
        DATABASE_URL: database.serviceUrl('mcp-server'),
        ...settings,
      });
      const { app, stop } = await bootService(AppModule.forRoot(config), { service: 'mcp-server' });
      let stopped: Promise<void> | undefined;
      const service = { app, stop: () => (stopped ??= stop()) };
      replicas.push(service);
      return service;
    },
    async stop() {
      await closed(server);
      await Promise.all(replicas.map((replica) => replica.stop()));
      engine.stop();
      issuer.stop();
      await connection.close();
      await database.drop();
    },
  };
}

const closed = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.closeAllConnections();
    server.close(() => resolve());
  });

const META = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };

type Members = { readonly [key: string]: unknown };
/** What a test looks at; which of it is there is what the test is about. */
type Json = Members & {
  readonly result: Members & {
    readonly tools: readonly { readonly name: string }[];
    readonly inputRequests: Members;
    readonly structuredContent: Members;
    readonly _meta: Members;
  };
  readonly error: Members & { readonly code: number; readonly data: Members };
};
export type RawAnswer = { readonly status: number; readonly text: string; readonly json: Json };

/** One request, byte by byte as the test wants it. */
export async function raw(
  url: URL | string,
  body: unknown,
  headers: Record<string, string> = {},
  init: RequestInit = {},
): Promise<RawAnswer> {
  const response = await fetch(url, {
    method: 'POST',
    body: typeof body === 'string' || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    ...init,
  });
  const text = await response.text();
  return { status: response.status, text, json: text === '' ? undefined : JSON.parse(text) };
}

/** A well-formed request with the headers that mirror it. */
export function request(
  method: string,
  params: Record<string, unknown> = {},
  meta: Record<string, unknown> = {},
): { body: Members & { readonly params: Members }; headers: Record<string, string> } {
  const name = params['name'];
  return {
    body: { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: { ...META, ...meta } } },
    headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...(typeof name === 'string' && { 'mcp-name': name }) },
  };
}
