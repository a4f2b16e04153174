import { createHash } from 'node:crypto';
import { Controller, UseGuards } from '@nestjs/common';
import { Bus } from '@isthmus/messaging';
import { WopError } from '@isthmus/protocol';
import type { Asker } from '../auth/asker.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';
import { readLog } from '../runs/read-log.js';
import { SeamGuard } from './seam.guard.js';
import { SEAMS } from './seams.js';
import { Stage } from './stage.js';

const MAX_LOG_BYTES = 1024 * 1024;

/** A server that nobody registers: the call fails before it leaves the host, and the log says so. */
const NO_SERVER = 'seam-tool-hooks';

/**
 * The pair of events of one tool call, out of the log of a run that really made it. The principal is the asker, whatever the body
 * says. Only the legs of what discovery advertises: tools have neither scopes nor limits of their own here. (families §2)
 */
@Controller()
@UseGuards(SeamGuard)
export class ToolHooksSeamController {
  constructor(
    private readonly bus: Bus,
    private readonly stage: Stage,
  ) {}

  @Route(SEAMS.toolHooks)
  async invoke(@Ask() { body }: Asked<typeof SEAMS.toolHooks>, @By() { passport }: Asker) {
    if (body.requiredScopes?.length || body.simulateRateLimitExhausted)
      throw new WopError('not_found', 'This host advertises neither perToolAuthorization nor perToolRateLimit.');
    const { toolName, args } = body;
    const node = {
      typeId: 'core.openwop.mcp.invoke-tool',
      config: { serverId: NO_SERVER, toolName, timeoutMs: 1_500 },
      // As inputs of the run, where credentials are masked, and not as a part of the definition.
      inputs: { args: { type: 'variable', variableName: 'args' } },
    };
    const name = createHash('sha256').update(toolName).digest('hex').slice(0, 16);
    const runId = await this.stage.run(passport, `seam.tool-hooks.${name}`, node, { args });
    const { events } = await readLog(this.bus, passport, runId, MAX_LOG_BYTES);
    const payloadOf = (type: string) => events.find((event) => event.type === type)?.payload;
    const pair = { toolCalled: payloadOf('agent.toolCalled'), toolReturned: payloadOf('agent.toolReturned') };
    if (!pair.toolCalled || !pair.toolReturned) throw new WopError('service_unavailable', 'The call has not come back yet. Try again.');
    return pair;
  }
}
