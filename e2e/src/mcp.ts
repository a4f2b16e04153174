import { Client as McpClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

export const REVISION = '2026-07-28';
export const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
export const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';

type Params = Readonly<Record<string, unknown>>;
type RpcError = { code: number; message: string; data?: { reason?: string; [key: string]: unknown } };
export type Result = {
  resultType: 'complete' | 'input_required';
  content?: { type: string; text?: string }[];
  structuredContent?: unknown;
  isError?: boolean;
  inputRequests?: Record<string, { method: string; params: { mode: string; message: string; requestedSchema: { properties: Params } } }>;
  requestState?: string;
  tools?: { name: string; inputSchema: object }[];
  _meta?: Params;
  [key: string]: unknown;
};
export type RpcAnswer = { status: number; headers: Headers; text: string; id?: unknown; result?: Result; error?: RpcError };
export type Request = { readonly body: { [key: string]: unknown }; readonly headers: Readonly<Record<string, string>> };

/** A well-formed request of this revision, with the headers that mirror it. */
export function request(method: string, params: Params = {}, meta: Params = {}): Request {
  const { name } = params;
  return {
    body: {
      jsonrpc: '2.0',
      id: 1,
      method,
      params: { ...params, _meta: { [VERSION_KEY]: REVISION, [CAPABILITIES_KEY]: { elicitation: { form: {} } }, ...meta } },
    },
    headers: { 'mcp-protocol-version': REVISION, 'mcp-method': method, ...(typeof name === 'string' && { 'mcp-name': name }) },
  };
}

/** The mount, one HTTP request at a time, with nothing between the test and the wire. */
export class Mount {
  constructor(
    readonly url: string,
    readonly key: string | undefined,
  ) {}

  async post(body: unknown, headers: Readonly<Record<string, string>> = {}, init: RequestInit = {}): Promise<RpcAnswer> {
    const response = await fetch(this.url, {
      method: 'POST',
      body: typeof body === 'string' || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
      ...init,
      headers: {
        ...(this.key !== undefined && { authorization: `Bearer ${this.key}` }),
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, ...(isJson(response) && text !== '' && JSON.parse(text)) };
  }

  ask(method: string, params: Params = {}, { meta, headers, signal }: Asking = {}): Promise<RpcAnswer> {
    const wanted = request(method, params, meta);
    return this.post(wanted.body, { ...wanted.headers, ...headers }, signal ? { signal } : {});
  }

  list(): Promise<RpcAnswer> {
    return this.ask('tools/list');
  }

  async names(): Promise<string[]> {
    return ((await this.list()).result?.tools ?? []).map(({ name }) => name);
  }

  call(name: string, args: object = {}, rest: Params = {}, asking: Asking = {}): Promise<RpcAnswer> {
    return this.ask('tools/call', { name, arguments: args, ...rest }, asking);
  }

  /** The retry of a call that asked: the same answer to every question. */
  answer(
    name: string,
    args: object,
    { inputRequests = {}, requestState }: Result,
    response: object,
    asking: Asking = {},
  ): Promise<RpcAnswer> {
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, response]));
    return this.call(name, args, { inputResponses, requestState }, asking);
  }
}

export type Asking = { readonly meta?: Params; readonly headers?: Readonly<Record<string, string>>; readonly signal?: AbortSignal };

const isJson = (response: Response): boolean => response.headers.get('content-type')?.startsWith('application/json') ?? false;

export const runOf = ({ _meta }: Result): string => String(_meta?.['dev.isthmus/runId']);

/** The official client, pinned to this revision, with nothing but a URL and a key. */
export async function officialClient(url: string, key: string, elicit?: (message: string) => object): Promise<McpClient> {
  const client = new McpClient(
    { name: 'e2e', version: '1.0.0' },
    { capabilities: elicit ? { elicitation: { form: {} } } : {}, versionNegotiation: { mode: { pin: REVISION } } },
  );
  if (elicit) client.setRequestHandler('elicitation/create', async ({ params }) => elicit(params.message) as never);
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${key}` } } }));
  return client;
}
