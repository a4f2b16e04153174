import { Controller, Res } from '@nestjs/common';
import { Bus } from '@isthmus/messaging';
import { engine, ROUTES, validationError, WopError, WorkflowDefinition } from '@isthmus/protocol';
import type { FastifyReply } from 'fastify';
import type { Asker } from '../auth/asker.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';

@Controller()
export class WorkflowsController {
  constructor(private readonly bus: Bus) {}

  /** The definition alone, as the protocol has it. */
  @Route(ROUTES.getWorkflow)
  async getDefinition(@Ask() { params }: Asked<typeof ROUTES.getWorkflow>, @By() { passport }: Asker) {
    return (await this.bus.call(engine.getWorkflow, params, { passport })).definition;
  }

  @Route(ROUTES.getHostWorkflow)
  get(@Ask() { params }: Asked<typeof ROUTES.getHostWorkflow>, @By() { passport }: Asker) {
    return this.bus.call(engine.getWorkflow, params, { passport });
  }

  @Route(ROUTES.listWorkflows)
  list(@Ask() { query: { cursor, limit } }: Asked<typeof ROUTES.listWorkflows>, @By() { passport }: Asker) {
    return this.bus.call(engine.listWorkflows, { cursor, limit }, { passport });
  }

  /** The path names the workflow; a body may repeat the name but not contradict it. */
  @Route(ROUTES.putWorkflow)
  async put(
    @Ask() { params, body }: Asked<typeof ROUTES.putWorkflow>,
    @By() { passport }: Asker,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { workflowId } = params;
    if (body['id'] !== undefined && body['id'] !== workflowId)
      throw new WopError('validation_error', 'The id in the body is not the one in the path.');
    const definition = WorkflowDefinition.safeParse({ ...body, id: workflowId });
    if (!definition.success) throw validationError(definition.error, 'workflow definition');
    const { created, ...head } = await this.bus.call(engine.putWorkflow, { definition: definition.data }, { passport });
    reply.code(created ? 201 : 200);
    return head;
  }
}
