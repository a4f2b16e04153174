import { Controller, Inject, Res } from '@nestjs/common';
import { CONFIG } from '@isthmus/chassis';
import { Bus } from '@isthmus/messaging';
import { engine, ROUTES, WopError } from '@isthmus/protocol';
import type { FastifyReply } from 'fastify';
import type { Asker } from '../auth/asker.js';
import type { Config } from '../config.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';
import { markReplay } from '../http/replay.js';

@Controller()
export class RunsController {
  constructor(
    private readonly bus: Bus,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  @Route(ROUTES.createRun)
  async create(
    @Ask() { body, idempotency }: Asked<typeof ROUTES.createRun>,
    @By() { caller, passport }: Asker,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { tenantId, scopeId, ...wish } = body;
    if (tenantId !== undefined && tenantId !== caller.tenant)
      throw new WopError('forbidden', 'tenantId names another tenant than that of the credential.');
    if (scopeId !== undefined && scopeId !== caller.workspace)
      throw new WopError('forbidden', 'scopeId names another workspace than that of the credential.');
    const { runId, replayed } = await this.bus.call(
      engine.createRun,
      { ...wish, transport: 'rest', trust: 'trusted', ...(idempotency && { idempotency }) },
      { passport },
    );
    markReplay(reply, replayed);
    const statusUrl = `${this.config.PUBLIC_URL}/v1/runs/${runId}`;
    // Always the state a run begins in, never how far it has come: a replay of this answer is equal to the byte. (rulings, "Wire")
    return { runId, status: 'running', eventsUrl: `${statusUrl}/events`, statusUrl };
  }

  @Route(ROUTES.getRun)
  async get(@Ask() { params }: Asked<typeof ROUTES.getRun>, @By() { passport }: Asker) {
    const { snapshot } = await this.bus.call(engine.readRun, { runId: params.runId, want: ['snapshot'] }, { passport });
    return snapshot;
  }

  @Route(ROUTES.listRuns)
  list(@Ask() { query: { status, workflowId, tag, cursor, limit } }: Asked<typeof ROUTES.listRuns>, @By() { passport }: Asker) {
    return this.bus.call(engine.listRuns, { status, workflowId, tag, cursor, limit }, { passport });
  }

  @Route(ROUTES.cancelRun)
  async cancel(
    @Ask() { params, body, idempotency }: Asked<typeof ROUTES.cancelRun>,
    @By() { passport }: Asker,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { replayed, ...answer } = await this.bus.call(
      engine.cancelRun,
      { ...params, ...body, ...(idempotency && { idempotency }) },
      { passport },
    );
    markReplay(reply, replayed);
    return answer;
  }

  @Route(ROUTES.resolveInterrupt)
  async resolve(
    @Ask() { params, body, idempotency }: Asked<typeof ROUTES.resolveInterrupt>,
    @By() { passport }: Asker,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { runId, nodeId } = params;
    const { replayed, ...answer } = await this.bus.call(
      engine.resolveInterrupt,
      { runId, at: { nodeId }, resumeValue: body.resumeValue, ...(idempotency && { idempotency }) },
      { passport },
    );
    markReplay(reply, replayed);
    return answer;
  }
}
