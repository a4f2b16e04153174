import { Controller, Res, UseGuards } from '@nestjs/common';
import { Bus } from '@isthmus/messaging';
import { engine } from '@isthmus/protocol';
import type { FastifyReply } from 'fastify';
import type { Asker } from '../auth/asker.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';
import { adHocWorkflow } from './ad-hoc-workflow.js';
import { SeamGuard } from './seam.guard.js';
import { SEAMS } from './seams.js';

/** Registers for the asker's tenant; what it exposes is seen by the very next request on any replica, like every registration. */
@Controller()
@UseGuards(SeamGuard)
export class WorkflowsSeamController {
  constructor(private readonly bus: Bus) {}

  @Route(SEAMS.workflows)
  async register(
    @Ask() { body }: Asked<typeof SEAMS.workflows>,
    @By() { passport }: Asker,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { created, ...head } = await this.bus.call(engine.putWorkflow, { definition: adHocWorkflow(body) }, { passport });
    reply.code(created ? 201 : 200);
    return head;
  }
}
