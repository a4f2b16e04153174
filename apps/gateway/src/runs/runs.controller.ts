import { Controller, Inject, Req, Res } from '@nestjs/common';
import { CONFIG } from '@isthmus/chassis';
import { Bus } from '@isthmus/messaging';
import { engine, ROUTES, WopError } from '@isthmus/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Asker } from '../auth/asker.js';
import type { Config } from '../config.js';
import { etagOf, matches } from '../http/etag.js';
import { Inflight } from '../http/inflight.js';
import { markReplay } from '../http/replay.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';

@Controller()
export class RunsController {
  constructor(
    private readonly bus: Bus,
    private readonly inflight: Inflight,
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
    const run = { ...wish, transport: 'rest', trust: 'trusted', ...(idempotency && { idempotency }) } as const;
    const { runId, replayed } = await this.inflight.during(() => this.bus.call(engine.createRun, run, { passport }));
    markReplay(reply, replayed);
    const statusUrl = `${this.config.PUBLIC_URL}/v1/runs/${runId}`;
    // Always the state a run begins in, never how far it has come: a replay of this answer is equal to the byte. (rulings, "Wire")
    return { runId, status: 'running', eventsUrl: `${statusUrl}/events`, statusUrl };
  }

  /** With a strong tag of its bytes, which a run that stands still keeps. (RFC 0115) */
  @Route(ROUTES.getRun)
  async get(
    @Ask() { params }: Asked<typeof ROUTES.getRun>,
    @By() { passport }: Asker,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { snapshot, head } = await this.bus.call(engine.readRun, { runId: params.runId, want: ['snapshot'] }, { passport });
    const bytes = JSON.stringify(snapshot);
    const etag = etagOf(bytes, head);
    reply.header('etag', etag).header('cache-control', 'private, no-cache');
    if (matches(request.headers['if-none-match'], etag)) await reply.code(304).send();
    else await reply.header('content-type', 'application/json; charset=utf-8').send(bytes);
  }

  @Route(ROUTES.listRuns)
  list(@Ask() { query: { status, workflowId, tag, cursor, limit } }: Asked<typeof ROUTES.listRuns>, @By() { passport }: Asker) {
    return this.bus.call(engine.listRuns, { status, workflowId, tag, cursor, limit }, { passport });
  }
}
