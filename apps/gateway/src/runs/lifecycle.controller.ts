import { Controller, Inject, Res } from '@nestjs/common';
import { CONFIG } from '@isthmus/chassis';
import { Bus } from '@isthmus/messaging';
import { engine, MAX_BULK_CANCEL, ROUTES, WopError } from '@isthmus/protocol';
import type { FastifyReply } from 'fastify';
import type { Asker } from '../auth/asker.js';
import type { Config } from '../config.js';
import { Inflight } from '../http/inflight.js';
import { markReplay } from '../http/replay.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';

/** What people do to runs that are under way, or over. */
@Controller()
export class LifecycleController {
  constructor(
    private readonly bus: Bus,
    private readonly inflight: Inflight,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

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

  /** Answers 200 even when no run could be cancelled: each has its own verdict. (wire §4.5) */
  @Route(ROUTES.bulkCancelRuns)
  async bulkCancel(
    @Ask() { body, idempotency }: Asked<typeof ROUTES.bulkCancelRuns>,
    @By() { passport }: Asker,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    if (body.runIds.length > MAX_BULK_CANCEL)
      throw new WopError('validation_error', `One request cancels at most ${MAX_BULK_CANCEL} runs.`, { maxRunIds: MAX_BULK_CANCEL });
    const { results, replayed } = await this.bus.call(engine.cancelRuns, { ...body, ...(idempotency && { idempotency }) }, { passport });
    markReplay(reply, replayed);
    return { results };
  }

  @Route(ROUTES.pauseRun)
  async pause(
    @Ask() { params, body, idempotency }: Asked<typeof ROUTES.pauseRun>,
    @By() { passport }: Asker,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { replayed, ...answer } = await this.bus.call(
      engine.pauseRun,
      { ...params, ...body, ...(idempotency && { idempotency }) },
      { passport },
    );
    markReplay(reply, replayed);
    return answer;
  }

  @Route(ROUTES.resumeRun)
  async resume(
    @Ask() { params, body, idempotency }: Asked<typeof ROUTES.resumeRun>,
    @By() { passport }: Asker,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { replayed, ...answer } = await this.bus.call(
      engine.resumeRun,
      { ...params, ...body, ...(idempotency && { idempotency }) },
      { passport },
    );
    markReplay(reply, replayed);
    return answer;
  }

  /** A replay begins where its source began unless told otherwise; a branch has to say where it parts. (replay.md §4.1) */
  @Route(ROUTES.forkRun)
  async fork(
    @Ask() { params, body, idempotency }: Asked<typeof ROUTES.forkRun>,
    @By() { passport }: Asker,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { mode, fromSeq = mode === 'replay' ? 0 : undefined, runOptionsOverlay: overlay } = body;
    if (fromSeq === undefined)
      throw new WopError('validation_error', 'A branch needs fromSeq: the sequence it parts from its source at.', { path: 'fromSeq' });
    const wish = { ...params, mode, fromSeq, ...(overlay && { overlay }), ...(idempotency && { idempotency }) };
    const { replayed, ...answer } = await this.inflight.during(() => this.bus.call(engine.forkRun, wish, { passport }));
    markReplay(reply, replayed);
    return { ...answer, eventsUrl: `${this.config.PUBLIC_URL}/v1/runs/${answer.runId}/events` };
  }
}
