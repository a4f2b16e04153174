import { Injectable } from '@nestjs/common';
import { Clock, Logger } from '@isthmus/chassis';
import { Bell, Bus } from '@isthmus/messaging';
import {
  BELLS,
  type ErrorEnvelope,
  fromEnvelope,
  isWopError,
  type JsonObject,
  type Json,
  mcpClient,
  type ToolReply,
  WopError,
} from '@isthmus/protocol';
import canonicalize from 'canonicalize';
import type { NewEvent, RunState } from '../core/state.js';
import type { ToolCall } from '../nodes/node-type.js';
import { Invocations } from '../store/invocations.js';
import { Delegation } from './delegation.js';
import { logicalInvocationId } from './invocation-id.js';
import { sha256 } from './values.js';

/** Calls of tools by nodes that are in no agent's name. (families §2) */
const AGENT = 'core.system';
const RETRY_MS = 250;

/** What a call may use of the run it belongs to. */
export type CallingRun = {
  readonly tenant: string;
  readonly workspace: string;
  readonly principal: string;
  readonly runId: string;
  readonly epoch: number;
  readonly signal: AbortSignal;
  /** Milliseconds of the lease that are left: a later call is another worker's to make. */
  leaseLeft(): number;
  /** Appends the announcement, durably, before anything is sent. @throws when the lease is gone or the run has ended */
  announce(event: NewEvent<'agent.toolCalled'> | NewEvent<'node.dispatched'>): Promise<void>;
};

type Call = {
  readonly nodeId: string;
  readonly attempt: number;
  readonly ordinal: number;
  readonly serverId: string;
  readonly toolName: string;
  readonly args: JsonObject;
  readonly timeoutMs: number;
};

/** Makes the outside calls of nodes, recorded round by round. */
@Injectable()
export class ToolCalls {
  constructor(
    private readonly bus: Bus,
    private readonly bell: Bell,
    private readonly invocations: Invocations,
    private readonly delegation: Delegation,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  async begin(run: CallingRun, state: RunState, call: Call): Promise<ToolCall> {
    const { nodeId, ordinal, serverId, toolName, args } = call;
    // A node that is tried again makes a new announcement of the same logical call.
    const callId = call.attempt > 0 ? `${nodeId}:${ordinal}#${call.attempt}` : `${nodeId}:${ordinal}`;
    const invocationId = logicalInvocationId({ tenant: run.tenant, runId: run.runId, nodeId, ordinal, providerKey: `mcp:${serverId}` });
    const shared = { agentId: AGENT, toolName, callId, nodeId };
    if (!state.calls.has(callId)) {
      const argsHash = sha256(canonicalize(args) ?? '');
      await run.announce({
        type: 'agent.toolCalled',
        payload: { ...shared, argsHash, principal: run.principal, transport: 'mcp', serverId },
      });
    }
    const deadline = this.clock.monotonic() + call.timeoutMs;
    return {
      callId,
      round: (round, retry) => this.round(run, call, invocationId, round, deadline, retry),
      returned: ({ status, value, isError, negotiatedVersion, error }) => ({
        type: 'agent.toolReturned',
        payload: {
          ...shared,
          status,
          ...(value !== undefined && summary(value)),
          ...(isError !== undefined && { isError }),
          ...(negotiatedVersion !== undefined && { negotiatedVersion }),
          ...(error && { error }),
        },
        ...(value !== undefined && { untrusted: true }),
      }),
    };
  }

  private async round(
    run: CallingRun,
    call: Call,
    invocationId: string,
    round: number,
    deadline: number,
    retry: Parameters<ToolCall['round']>[1],
  ): Promise<ToolReply> {
    const { tenant, runId, epoch } = run;
    const key = { tenant, runId, nodeId: call.nodeId, invocationId, attempt: call.attempt, round, epoch };
    const claimed = await this.invocations.claim(key, this.clock.date());
    if (claimed.is === 'done') return replay(claimed.outcome);
    try {
      const reply = await this.send(run, call, invocationId, round, deadline, retry, claimed.is === 'unknown');
      return replay(await this.invocations.record(key, { is: 'reply', reply }, this.clock.date()));
    } catch (error) {
      // Only what the far side said is an outcome. A call we gave up ourselves (lease lost, run ended) leaves none.
      if (!isWopError(error) || run.signal.aborted) throw error;
      // Nor may the node see it as one: the run is let go, and whoever has it then enters the node again.
      if (error.code === 'invocation_too_late') throw new Error('the lease ended before the call was made', { cause: error });
      return replay(await this.invocations.record(key, { is: 'error', error: error.toEnvelope() }, this.clock.date()));
    }
  }

  /**
   * Sends until there is an answer. While mcp-client is away nothing was sent, so asking again is free; when it went away with
   * the call, the mount's policy decides whether the same logical call may be sent again.
   */
  private async send(
    run: CallingRun,
    call: Call,
    invocationId: string,
    round: number,
    deadline: number,
    retry: Parameters<ToolCall['round']>[1],
    mayHaveBeenSent: boolean,
  ): Promise<ToolReply> {
    let repeat = mayHaveBeenSent;
    const stop = this.abandonOnAbort(run.signal, invocationId);
    try {
      for (;;) {
        const left = Math.floor(deadline - this.clock.monotonic());
        if (left < 100)
          throw new WopError('mcp_server_disconnected', `Server "${call.serverId}" did not answer within ${call.timeoutMs} ms.`, {
            reason: 'timeout',
          });
        if (run.leaseLeft() <= 0) throw new WopError('invocation_too_late', 'Another worker has this run by now.');
        try {
          const passport = await this.delegation.passport(run);
          const input = {
            serverId: call.serverId,
            toolName: call.toolName,
            arguments: call.args,
            invocationId,
            runId: run.runId,
            round,
            repeat,
            startWithinMs: Math.max(0, Math.floor(run.leaseLeft())),
            timeoutMs: Math.min(left, 300_000),
            ...(retry?.requestState !== undefined && { requestState: retry.requestState }),
            ...(retry && { inputResponses: { ...retry.inputResponses } }),
          };
          return await this.bus.call(mcpClient.callTool, input, {
            passport,
            deadlineMs: Math.min(left, 300_000) + 2_000,
            signal: run.signal,
          });
        } catch (error) {
          if (run.signal.aborted || !isWopError(error) || error.code !== 'service_unavailable') throw error;
          const { lost, sent } = (error.details ?? {}) as { lost?: Json; sent?: Json };
          repeat ||= lost === true || sent === true;
          this.logger.warn('a tool call waits for mcp-client', { runId: run.runId, round, repeat });
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        }
      }
    } finally {
      stop();
    }
  }

  /** The remote server hears of a cancelled run while it works. */
  private abandonOnAbort(signal: AbortSignal, invocationId: string): () => void {
    const ring = (): void => this.bell.ring(BELLS.abandon.subject(invocationId));
    signal.addEventListener('abort', ring, { once: true });
    return () => signal.removeEventListener('abort', ring);
  }
}

const summary = (value: Json): { resultSha256: string; resultLength: number } => {
  const text = JSON.stringify(value);
  return { resultSha256: sha256(text), resultLength: Buffer.byteLength(text) };
};

function replay(
  outcome: { is: 'reply'; reply: ToolReply } | { is: 'error'; error: { error: string; message: string; details?: object } },
): ToolReply {
  if (outcome.is === 'reply') return outcome.reply;
  throw fromEnvelope(outcome.error as ErrorEnvelope);
}
