import { Clock, Logger, withSpan } from '@isthmus/chassis';
import { From, Handle } from '@isthmus/messaging';
import { type Caller, isWopError, mcpClient, type Parsed, type ToolReply, WopError } from '@isthmus/protocol';
import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import type { Target } from './connections.js';
import { Mounts } from './mounts.js';
import { RemoteTools } from './remote-tools.js';

@Controller()
export class ToolsHandler {
  constructor(
    private readonly mounts: Mounts,
    private readonly tools: RemoteTools,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  @Handle(mcpClient.listTools)
  async list(@From() caller: Caller, @Payload() { serverId, timeoutMs }: Parsed<typeof mcpClient.listTools>) {
    return this.tools.list(await this.#target(caller, serverId), timeoutMs);
  }

  @Handle(mcpClient.callTool)
  async call(@From() caller: Caller, @Payload() { serverId, runId, ...call }: Parsed<typeof mcpClient.callTool>): Promise<ToolReply> {
    const startedAt = this.clock.monotonic();
    const attributes = { 'openwop.run_id': runId, 'openwop.mcp.server_id': serverId };
    const log = (status: string, errorCode?: string): void =>
      this.logger.info('tool called', {
        metricKind: 'openwop.mcp.invocation',
        invocationId: call.invocationId,
        tenantId: caller.tenant,
        moduleId: serverId,
        status,
        ...(errorCode && { errorCode }),
        latencyMs: Math.round(this.clock.monotonic() - startedAt),
      });
    try {
      const reply = await withSpan(
        'openwop.activity.mcp',
        attributes,
        async () => this.tools.call(await this.#target(caller, serverId), call),
        { kind: 'CLIENT' },
      );
      log(reply.is);
      return reply;
    } catch (error) {
      log('failed', isWopError(error) ? error.code : 'internal_error');
      throw error;
    }
  }

  /** A server of another tenant or workspace is as unknown as one that never was. */
  async #target(caller: Caller, serverId: string): Promise<Target> {
    const mount = await this.mounts.find(caller, serverId);
    if (!mount) throw new WopError('mcp_server_not_found', 'No remote MCP server of that id is registered in this workspace.');
    const { serverId: _id, createdAt: _made, updatedAt: _changed, ...spec } = mount;
    return { tenant: caller.tenant, workspace: caller.workspace, serverId, spec };
  }
}
