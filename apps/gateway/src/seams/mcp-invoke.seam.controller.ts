import { Controller, UseGuards } from '@nestjs/common';
import { Ids } from '@isthmus/chassis';
import { Bus } from '@isthmus/messaging';
import { authz, engine, type JsonObject, mcpClient, type ToolReply, WopError } from '@isthmus/protocol';
import type { Asker } from '../auth/asker.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';
import { type Authority, comparedAuthority } from './authority.js';
import { SeamGuard } from './seam.guard.js';
import { SEAMS } from './seams.js';

/** As often as the engine's own nodes let a tool ask. */
const MAX_ROUNDS = 8;

type Wish = Asked<typeof SEAMS.mcpInvoke>['body'];
type Invoked = {
  readonly reply: Extract<ToolReply, { is: 'complete' }>;
  readonly mrtr?: {
    readonly inputRequiredSeen: boolean;
    readonly retried: boolean;
    readonly requestStateEchoed: boolean;
    readonly result: JsonObject;
  };
};
/** The host as an MCP client, over the client that mounts are called with. (spec/seams.md §3) */
@Controller()
@UseGuards(SeamGuard)
export class McpInvokeSeamController {
  constructor(
    private readonly bus: Bus,
    private readonly ids: Ids,
  ) {}

  @Route(SEAMS.mcpInvoke)
  async invoke(@Ask() { body }: Asked<typeof SEAMS.mcpInvoke>, @By() asker: Asker) {
    const before = body.scenario && (await this.authority(asker));
    const { reply, mrtr } = await this.call(body, asker.passport);
    const after = before && (await this.authority(asker));
    return {
      negotiatedVersion: reply.negotiatedVersion,
      toolResult: reply.result,
      isError: reply.isError,
      ...(mrtr && { mrtr }),
      ...(before && after && { extensionAuthority: comparedAuthority(before, after) }),
    };
  }

  /** One logical invocation, however many rounds it takes. Nobody answers for a person who was not asked to. */
  private async call(body: Wish, passport: string): Promise<Invoked> {
    const { serverUrl, requestVersion, tool, elicitationAnswer } = body;
    const call = {
      url: serverUrl,
      ...(requestVersion !== undefined && { revision: requestVersion }),
      toolName: tool,
      arguments: body.arguments ?? (tool === 'echo' ? { text: 'openwop-conformance' } : {}),
      invocationId: this.ids.opaque(24),
    };
    let reply = await this.bus.call(mcpClient.callEndpoint, { ...call, round: 0 }, { passport });
    let isEchoed = true;
    for (let round = 1; reply.is === 'input_required'; round += 1) {
      if (!elicitationAnswer)
        throw new WopError('mcp_tool_invocation_failed', 'The tool asked for input, and the request brings no answer.', {
          reason: 'input_required',
          retriable: false,
        });
      if (round > MAX_ROUNDS)
        throw new WopError('mcp_mrtr_rounds_exceeded', `The tool asked for input more than ${MAX_ROUNDS} times.`, {
          maxRounds: MAX_ROUNDS,
        });
      const answer: JsonObject = { action: 'accept', content: elicitationAnswer };
      const { requestState } = reply;
      const retry = {
        ...call,
        round,
        ...(requestState !== undefined && { requestState }),
        inputResponses: Object.fromEntries(Object.keys(reply.inputRequests).map((key) => [key, answer])),
      };
      isEchoed &&= requestState !== undefined && retry.requestState === requestState;
      reply = await this.bus.call(mcpClient.callEndpoint, retry, { passport });
      if (reply.is === 'complete')
        return { reply, mrtr: { inputRequiredSeen: true, retried: true, requestStateEchoed: isEchoed, result: reply.result } };
    }
    return { reply };
  }

  /** The scopes the asker has by authz's word of now, and the approvals that are open in its workspace. */
  private async authority({ caller: { tenant, workspace, principal }, passport }: Asker): Promise<Authority> {
    const [{ caller }, { runs }] = await Promise.all([
      this.bus.call(authz.delegate, { for: 'principal', tenant, workspace, principal }),
      this.bus.call(engine.listRuns, { status: ['waiting-approval'], limit: 500 }, { passport }),
    ]);
    return { scopes: caller.scopes, waiting: runs.map(({ runId }) => runId) };
  }
}
