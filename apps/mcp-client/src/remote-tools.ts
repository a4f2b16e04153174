import type { Tool } from '@modelcontextprotocol/client';
import { type Clock, currentTraceparent } from '@isthmus/chassis';
import { type JsonObject, type mcpClient, type Output, type Parsed, type ToolReply, WopError } from '@isthmus/protocol';
import type { Breakers } from './breakers.js';
import type { Connection } from './connect.js';
import type { Connections, Lease, Target } from './connections.js';
import { disconnected, Exchange, within } from './exchange.js';
import { classify, type Failure, isInvalidParams, recoveryFrom, toWopError } from './failure.js';
import type { InFlight } from './in-flight.js';
import { resultTooLarge } from './remote-fetch.js';
import { toolReply } from './tool-reply.js';
import { versionUnsupported } from './version-policy.js';

export type ToolCall = Omit<Parsed<typeof mcpClient.callTool>, 'serverId' | 'runId'>;

/** How sure must we be that a call was not done before it is sent once more? */
export type RepeatUnknown = 'never' | 'hinted' | 'always';

export type RemoteOptions = { readonly repeatUnknown: RepeatUnknown; readonly maxResultBytes: number };

/** What a conversation with a server may do with its connection; `refreshList` is set once a list was found to be out of date. */
type Turn = { readonly connection: Connection; readonly exchange: Exchange; readonly refreshList: boolean };

/** Asks remote servers for their tools and calls them. Knows of mounts only what it is given. */
export class RemoteTools {
  constructor(
    private readonly connections: Connections,
    private readonly breakers: Breakers,
    private readonly inFlight: InFlight,
    private readonly clock: Clock,
    private readonly options: RemoteOptions,
  ) {}

  async list(target: Target, timeoutMs: number): Promise<Output<typeof mcpClient.listTools>> {
    const exchange = new Exchange(timeoutMs);
    try {
      return await within(exchange, () =>
        this.#converse(target, exchange, async ({ connection, refreshList }) => {
          exchange.mayRepeat = true;
          const tools = await connection.tools(exchange, currentTraceparent(), { refresh: refreshList });
          const { maxResultBytes } = this.options;
          if (Buffer.byteLength(JSON.stringify(tools)) > maxResultBytes) throw resultTooLarge(maxResultBytes);
          return { tools: tools as unknown as JsonObject[], negotiatedVersion: connection.revision };
        }),
      );
    } finally {
      exchange.end();
    }
  }

  async call(target: Target, call: ToolCall): Promise<ToolReply> {
    const arrivedAt = this.clock.monotonic();
    const { toolAllowlist } = target.spec;
    if (toolAllowlist && !toolAllowlist.includes(call.toolName)) throw toolNotFound();
    if (call.repeat && this.#repeatUnknown(target) === 'never') throw outcomeUnknown();

    const isTooLate = (): boolean => this.clock.monotonic() - arrivedAt >= call.startWithinMs;
    const exchange = new Exchange(call.timeoutMs);
    const leave = this.inFlight.add(call.invocationId, exchange);
    try {
      return await within(exchange, () => this.#converse(target, exchange, (turn) => this.#callOnce(target, call, turn, isTooLate)));
    } finally {
      leave();
      exchange.end();
    }
  }

  async #callOnce(
    target: Target,
    call: ToolCall,
    { connection, exchange, refreshList }: Turn,
    isTooLate: () => boolean,
  ): Promise<ToolReply> {
    if (isTooLate()) throw tooLate();
    const answersInput = call.requestState !== undefined || call.inputResponses !== undefined;
    // Input is answered by a request of the era that asked for it; there is no such request in the older one.
    if (answersInput && connection.approach.era === 'legacy') throw versionUnsupported(target.spec.versionPolicy, [connection.revision]);

    const meta = { ...currentTraceparent(), 'dev.isthmus/logicalInvocationId': call.invocationId };
    const tool = await findTool(connection, exchange, meta, call.toolName, refreshList);
    exchange.mayRepeat = MAY_REPEAT[this.#repeatUnknown(target)](tool);
    if (call.repeat && !exchange.mayRepeat) throw outcomeUnknown();

    let isWritten = false;
    exchange.beforeWrite = () => {
      if (isWritten) return undefined;
      if (isTooLate()) return tooLate();
      isWritten = true;
      exchange.isSent = true;
      return undefined;
    };
    try {
      const answer = await connection.call(exchange, tool, paramsOf(call, meta), { 'Idempotency-Key': call.invocationId });
      return toolReply(answer, connection.revision, this.options.maxResultBytes);
    } catch (error) {
      // "Invalid params" is also what a server says of a tool it no longer has: its list tells which it was.
      if (isInvalidParams(classify(error, exchange, connection.hasSession)))
        await findTool(connection, exchange, meta, call.toolName, true);
      throw error;
    } finally {
      exchange.beforeWrite = () => undefined;
    }
  }

  #repeatUnknown({ spec }: Target): RepeatUnknown {
    return spec.repeatUnknown ?? this.options.repeatUnknown;
  }

  /** `work` over a connection to the target, once more where a failure can be made good; each kind of failure once. */
  async #converse<T>(target: Target, exchange: Exchange, work: (turn: Turn) => Promise<T>): Promise<T> {
    const { url, versionPolicy } = target.spec;
    const { origin } = new URL(url);
    const recovered = new Set<Failure['is']>();
    for (let refreshList = false; ; ) {
      if (!this.breakers.admits(origin)) throw leftAlone(exchange.isSent);
      let lease: Lease | undefined;
      try {
        lease = await this.connections.lease(target, exchange);
        const result = await work({ connection: lease.connection, exchange, refreshList });
        this.breakers.answered(origin);
        return result;
      } catch (error) {
        const failure = classify(error, exchange, lease?.connection.hasSession ?? false);
        if (lease) this.#note(origin, failure);
        const recovery =
          lease && !recovered.has(failure.is)
            ? recoveryFrom(failure, { ...exchangeFacts(exchange), isFresh: lease.isFresh, allowedRevisions: versionPolicy.allow })
            : undefined;
        if (BREAKS_CONNECTION.has(failure.is)) {
          lease?.discard();
          this.connections.forgetEra(url);
        }
        if (!recovery)
          throw failure.is === 'version'
            ? versionUnsupported(versionPolicy, failure.supported, error)
            : toWopError(failure, exchange.isSent);
        recovered.add(failure.is);
        refreshList ||= recovery === 'relist';
        // A refusal says that this request was not done; it says nothing of an earlier one that got lost.
        if (!recovered.has('transport')) exchange.isSent = false;
      } finally {
        lease?.release();
      }
    }
  }

  /** A failed connect was noted by whoever opened it, once for all who waited. */
  #note(origin: string, failure: Failure): void {
    if (failure.is === 'transport') this.breakers.failed(origin);
    else if (failure.is !== 'ours') this.breakers.answered(origin);
  }
}

/** After these the connection is of no use to anyone, and what was known of the server's era may be wrong. */
const BREAKS_CONNECTION: ReadonlySet<Failure['is']> = new Set(['session_lost', 'version', 'transport']);

const MAY_REPEAT: { readonly [P in RepeatUnknown]: (tool: Tool) => boolean } = {
  never: () => false,
  // The server's own word; a mount that is `hinted` trusts it. (rulings, "MCP client")
  hinted: (tool) => tool.annotations?.idempotentHint === true,
  always: () => true,
};

const exchangeFacts = ({ isSent, mayRepeat }: Exchange) => ({ isSent, mayRepeat });

/** What no list has never goes on the wire. (families.md §1.2 rule 5) */
async function findTool(connection: Connection, exchange: Exchange, meta: JsonObject, name: string, refresh: boolean): Promise<Tool> {
  const tool = await connection.tool(name, exchange, meta, { refresh });
  if (!tool) throw toolNotFound();
  return tool;
}

/** Input is echoed as it came and answers the round before; the JSON-RPC id is new each time. (mcp.md §1.6) */
const paramsOf = ({ toolName, arguments: args, requestState, inputResponses }: ToolCall, meta: JsonObject) => ({
  name: toolName,
  arguments: args,
  ...(inputResponses !== undefined && { inputResponses }),
  ...(requestState !== undefined && { requestState }),
  _meta: meta,
});

const toolNotFound = (): WopError =>
  new WopError('mcp_tool_not_found', 'The remote MCP server lists no such tool, or the mount does not allow it.');

const outcomeUnknown = (): WopError =>
  new WopError(
    'node_outcome_unknown',
    'An earlier attempt of this call may have been received, and the mount does not allow to repeat it.',
  );

const tooLate = (): WopError =>
  new WopError('invocation_too_late', 'The time in which the asker could vouch for this call is over; it was not sent.');

const leftAlone = (sent: boolean): WopError =>
  disconnected('The remote MCP server failed several times in a row and is left alone for a moment.', { reason: 'breaker_open', sent });
