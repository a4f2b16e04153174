import { Client, type ClientOptions, type Tool } from '@modelcontextprotocol/client';
import type { Clock } from '@isthmus/chassis';
import type { JsonObject } from '@isthmus/protocol';
import { asSent } from './as-sent.js';
import { currentExchange, type Exchange } from './exchange.js';
import { refusalIn } from './failure.js';
import type { Fetch } from './remote-fetch.js';
import { RemoteTransport } from './remote-transport.js';
import { type Approach, VersionRefusal } from './version-policy.js';

const INFO = { name: 'isthmus', title: 'Isthmus', version: '1.0.0' };
/** The exchange has the deadline; the SDK's own timers must not be first. */
const NEVER_MS = 2_147_483_647;

/** A list that came without an age limit is asked for again after this. */
const LIST_TTL_MS = 60_000;

const COMMON: ClientOptions = { defaultCacheTtlMs: LIST_TTL_MS, inputRequired: { autoFulfill: false } };

/** Forms are answered by the people of a run. Without handshake an answer is a new request, so nothing is held open for it; the older era would need us to hold the call. */
const OPTIONS: { readonly [E in Approach['era']]: (revisions: readonly string[]) => ClientOptions } = {
  modern: ([pin = '']) => ({ ...COMMON, capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin } } }),
  legacy: (revisions) => ({
    ...COMMON,
    capabilities: {},
    supportedProtocolVersions: [...revisions],
    versionNegotiation: { mode: 'legacy' },
  }),
};

/**
 * A call looks its tool up in a list of at most this age even if the server wants none kept (the SDK's servers say so unless
 * told otherwise): listing before each call would double the requests. Nothing hangs on it: what the list lacks is asked for
 * again, and what the server has dropped it refuses.
 */
const LOOKUP_MS = 5_000;

/** A connection to one server in one era; many exchanges may use it at once. */
export class Connection {
  #lookup: { readonly tools: ReadonlyMap<string, Tool>; readonly at: number } | undefined;

  constructor(
    readonly approach: Approach,
    readonly revision: string,
    private readonly client: Client,
    private readonly transport: RemoteTransport,
    private readonly clock: Clock,
  ) {
    client.setNotificationHandler('notifications/tools/list_changed', () => {
      this.#lookup = undefined;
    });
  }

  get hasSession(): boolean {
    return this.transport.sessionId !== undefined;
  }

  /** The tools the server lists, out of its list's cache while that is fresh by the server's own word. */
  async tools(exchange: Exchange, meta: JsonObject, options: { refresh: boolean }): Promise<readonly Tool[]> {
    if (!this.client.getServerCapabilities()?.tools) return [];
    const cacheMode = options.refresh ? 'refresh' : 'use';
    const { tools } = await this.client.listTools({ _meta: meta }, { signal: exchange.stopping, timeout: NEVER_MS, cacheMode });
    this.#lookup = { tools: new Map(tools.map((tool) => [tool.name, tool])), at: this.clock.monotonic() };
    return tools;
  }

  /** One tool of the list. A list that lacks it is asked for once more: it may be older than the tool. */
  async tool(name: string, exchange: Exchange, meta: JsonObject, options: { refresh: boolean }): Promise<Tool | undefined> {
    const isHeld = !options.refresh && this.#lookup !== undefined && this.clock.monotonic() - this.#lookup.at < LOOKUP_MS;
    const held = isHeld ? this.#lookup?.tools.get(name) : undefined;
    if (held) return held;
    for (const refresh of options.refresh || isHeld ? [true] : [false, true]) {
      const found = (await this.tools(exchange, meta, { refresh })).find((tool) => tool.name === name);
      if (found) return found;
    }
    return undefined;
  }

  /**
   * One request. The tool's definition tells which arguments also go into headers; its output schema is left out, for results
   * are untrusted whether or not they match, and compiling a stranger's schema is work and code of the stranger's choosing.
   */
  call(
    exchange: Exchange,
    { outputSchema: _, ...toolDefinition }: Tool,
    params: Record<string, unknown>,
    headers: Record<string, string>,
  ): Promise<unknown> {
    return this.client.callTool(params as Parameters<Client['callTool']>[0], {
      toolDefinition,
      headers,
      allowInputRequired: true,
      signal: exchange.stopping,
      timeout: NEVER_MS,
    });
  }

  close(): Promise<void> {
    return this.transport.leave();
  }
}

/**
 * Opens a connection in exactly one way.
 * @throws VersionRefusal when the server will not speak one of the approach's revisions
 */
export async function connect(approach: Approach, url: string, fetch: Fetch, exchange: Exchange, clock: Clock): Promise<Connection> {
  const transport = new RemoteTransport(new URL(url), fetch);
  const client = asSent(new Client(INFO, OPTIONS[approach.era](approach.revisions)), async (method, result) => {
    currentExchange()?.gotResult();
    if (method !== 'initialize') return;
    // Before the SDK confirms the handshake: a revision that is not allowed is not spoken, not even once.
    const { protocolVersion } = result as { protocolVersion: string };
    if (!approach.revisions.includes(protocolVersion)) {
      await transport.leave();
      throw new VersionRefusal([protocolVersion]);
    }
  });
  const close = (): void => void transport.close();
  exchange.stopping.addEventListener('abort', close, { once: true });
  try {
    await exchange.orStop(client.connect(transport, { timeout: NEVER_MS }));
    const revision = client.getNegotiatedProtocolVersion();
    if (!revision || !approach.revisions.includes(revision)) throw new VersionRefusal([revision]);
    return new Connection(approach, revision, client, transport, clock);
  } catch (error) {
    await transport.close();
    throw refusalIn(error) ?? error;
  } finally {
    exchange.stopping.removeEventListener('abort', close);
  }
}
