import { Controller, Res } from '@nestjs/common';
import { Bus } from '@isthmus/messaging';
import { isWopError, mcpClient, ROUTES, WopError } from '@isthmus/protocol';
import type { FastifyReply } from 'fastify';
import type { Asker } from '../auth/asker.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';

@Controller()
export class MountsController {
  constructor(private readonly bus: Bus) {}

  @Route(ROUTES.putMount)
  async put(
    @Ask() { params, body }: Asked<typeof ROUTES.putMount>,
    @By() { passport }: Asker,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { mount, created } = await this.bus.call(mcpClient.putMount, { serverId: params.serverId, spec: body }, { passport });
    reply.code(created ? 201 : 200);
    return mount;
  }

  @Route(ROUTES.getMount)
  get(@Ask() { params }: Asked<typeof ROUTES.getMount>, @By() { passport }: Asker) {
    return this.bus.call(mcpClient.getMount, params, { passport });
  }

  @Route(ROUTES.listMounts)
  list(@Ask() { query: { cursor, limit } }: Asked<typeof ROUTES.listMounts>, @By() { passport }: Asker) {
    return this.bus.call(mcpClient.listMounts, { cursor, limit }, { passport });
  }

  @Route(ROUTES.deleteMount)
  async delete(@Ask() { params }: Asked<typeof ROUTES.deleteMount>, @By() { passport }: Asker): Promise<void> {
    const { deleted } = await this.bus.call(mcpClient.deleteMount, params, { passport });
    if (!deleted) throw noSuchServer();
  }

  @Route(ROUTES.listMountTools)
  async tools(@Ask() { params }: Asked<typeof ROUTES.listMountTools>, @By() { passport }: Asker) {
    try {
      return await this.bus.call(mcpClient.listTools, params, { passport });
    } catch (error) {
      // What fails a node that calls it is, for who asks by its address, just not there. (every route: the wrong tenant sees 404)
      throw isWopError(error) && error.code === 'mcp_server_not_found' ? noSuchServer() : error;
    }
  }
}

const noSuchServer = (): WopError => new WopError('not_found', 'There is no such remote MCP server, or not for this credential.');
