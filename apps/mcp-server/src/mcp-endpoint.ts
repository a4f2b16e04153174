import { Inject, Injectable } from '@nestjs/common';
import { Clock, Logger, withSpan } from '@isthmus/chassis';
import { Bus, type ExchangeContext, Passports, type TunnelledRequest, type WholeResponse } from '@isthmus/messaging';
import type { Caller } from '@isthmus/protocol';
import type { Method } from './call.js';
import { CallerPassport } from './caller-passport.js';
import { readEnvelope } from './envelope.js';
import type { Catalog } from './catalog.js';
import { ExposedTools } from './exposed-tools.js';
import { headerMap, type HeaderMap, refuseDifferences, refuseMissing } from './header-agreement.js';
import { mountOf } from './mount.js';
import { collect, type Message, readMessage, Refused } from './read-message.js';
import { toRpcError } from './rpc-errors.js';
import { CODES, encodeAnswer, encodeError, RpcError, type RpcId } from './rpc.js';
import { inTraceOf } from './trace.js';

export const METHOD_TABLE = Symbol('methods by name');

type Context = ExchangeContext & { readonly caller: Caller; readonly mount: string; readonly headers: HeaderMap };
type Request = Extract<Message, { is: 'request' }>;

const JSON_HEADERS = [['content-type', 'application/json']] as const;
const ACCEPTED: WholeResponse = { status: 202, headers: [] };

/**
 * The mount itself, for revision 2026-07-28: one POST, one answer, nothing kept. The wire is that of the SDK's
 * `createMcpHandler` (a test holds the two against each other); it is written out because the SDK builds a server and
 * validates whole lists per request, which is most of what a call costs.
 */
@Injectable()
export class McpEndpoint {
  constructor(
    private readonly passports: Passports,
    private readonly bus: Bus,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly tools: ExposedTools,
    @Inject(METHOD_TABLE) private readonly methods: ReadonlyMap<string, Method>,
  ) {}

  /** @throws WopError when the passport is refused or cannot be checked: that is the gateway's to tell */
  async serve(request: TunnelledRequest, context: ExchangeContext): Promise<WholeResponse> {
    const caller = await this.passports.verify(context.passport);
    let id: RpcId | undefined;
    try {
      refuseTransport(request);
      const message = readMessage(await collect(request.body));
      if (message.is === 'request') id = message.id;
      const inside = { ...context, caller, mount: mountOf(request.url), headers: headerMap(request.headers) };
      return message.is === 'request' ? await this.answer(message, inside) : notified(message, inside);
    } catch (error) {
      return this.refuse(error, id);
    }
  }

  /** The order of the checks is ruled: what disagrees, then the revision, what is missing, the method. (rulings "MCP mount") */
  private async answer({ id, method, params }: Request, context: Context): Promise<WholeResponse> {
    const { caller, mount, headers, signal, draining } = context;
    const catalog = once(() => this.tools.of({ caller, passport: context.passport, mount }));
    const mirrored = async () => (method === 'tools/call' && (await catalog()).tool(String(params['name']))?.headers) || [];
    refuseDifferences(headers, method, params, hasParamHeader(headers) ? await mirrored() : []);
    const { meta, capabilities } = readEnvelope(headers, method, params);
    refuseMissing(headers, method, params, await mirrored());
    const handler = this.methods.get(method);
    if (!handler) throw new RpcError(CODES.methodNotFound, 'Method not found');
    const passport = new CallerPassport(this.bus, this.clock, this.passports, caller, context.passport);
    const answer = await inTraceOf(meta, () =>
      withSpan(`mcp ${method}`, { 'rpc.system': 'jsonrpc', 'rpc.method': method }, () =>
        handler.answer({ caller, passport, mount, catalog, params, meta, capabilities, headers, signal, draining }),
      ),
    );
    return { status: 200, headers: JSON_HEADERS, body: encodeAnswer(id, answer) };
  }

  private refuse(error: unknown, id: RpcId | undefined): WholeResponse {
    const refused = error instanceof Refused ? error : { id, error: toRpcError(error) };
    if (refused.error.code === CODES.internalError) this.logger.warn('a request failed', { error: refused.error.cause ?? refused.error });
    const allow = refused.error.status === 405 ? [['allow', 'POST'] as const] : [];
    return { status: refused.error.status, headers: [...JSON_HEADERS, ...allow], body: encodeError(refused.id, refused.error) };
  }
}

const hasParamHeader = (headers: HeaderMap): boolean => [...headers.keys()].some((name) => name.startsWith('mcp-param-'));

function once(work: () => Promise<Catalog>): () => Promise<Catalog> {
  let begun: Promise<Catalog> | undefined;
  return () => (begun ??= work());
}

function refuseTransport({ method, headers }: TunnelledRequest): void {
  if (method !== 'POST') throw new RpcError(CODES.invalidRequest, 'Only POST is served here.', undefined, { status: 405 });
  const type = headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1];
  if (!/^application\/json\s*(;|$)/i.test(type ?? ''))
    throw new RpcError(CODES.invalidRequest, 'The body must be application/json.', undefined, { status: 415 });
}

/** No notification of a client means anything in this revision over HTTP: a cancel is a connection that ends. (§1.5) */
function notified({ method, params }: Message, { headers }: Context): WholeResponse {
  refuseDifferences(headers, method, params, []);
  return ACCEPTED;
}
