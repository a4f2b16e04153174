import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One HTTP request as it arrived. */
export type RecordedRequest = {
  /** JSON-RPC method of the body, if it has one. */
  readonly method: string | undefined;
  readonly httpMethod: string;
  /** Names in lower case, as Node gives them. */
  readonly headers: IncomingHttpHeaders;
  /** The parsed body; the text where it is no JSON. */
  readonly body: unknown;
};

export type McpPeer = {
  readonly url: string;
  /** Every request, in order of arrival. */
  readonly requests: readonly RecordedRequest[];
  /** The `tools/call` requests of one tool. */
  calls(tool: string): RecordedRequest[];
  /** Ends the server, with every connection that is open. */
  close(): Promise<void>;
};

export type PeerOptions = {
  /** A free one without it. */
  readonly port?: number;
  /** Answers instead of the peer when it returns true: for faults (a 500, a dropped connection, silence). */
  readonly intercept?: (request: RecordedRequest, response: ServerResponse) => boolean;
};

type Serve = (request: IncomingMessage, response: ServerResponse, body: unknown) => Promise<void> | void;

/** A real HTTP server on loopback that records what it is asked and leaves the answer to `serve`. */
export async function startPeer(serve: Serve, { port = 0, intercept }: PeerOptions): Promise<McpPeer> {
  const requests: RecordedRequest[] = [];
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const body = parse(await textOf(request));
    const recorded = { method: methodOf(body), httpMethod: request.method ?? '', headers: request.headers, body };
    requests.push(recorded);
    if (intercept?.(recorded, response)) return;
    if (request.url !== '/mcp') response.writeHead(404).end();
    else await serve(request, response, body);
  };
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    requests,
    calls: (tool) =>
      requests.filter(({ method, body }) => method === 'tools/call' && (body as { params?: { name?: unknown } }).params?.name === tool),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function parse(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const methodOf = (body: unknown): string | undefined => {
  const { method } = (typeof body === 'object' && body !== null ? body : {}) as { method?: unknown };
  return typeof method === 'string' ? method : undefined;
};
