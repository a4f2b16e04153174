import { Controller, Res } from '@nestjs/common';
import { Bus } from '@isthmus/messaging';
import { engine, isWopError, ROUTES, WopError } from '@isthmus/protocol';
import type { FastifyReply } from 'fastify';
import type { Asker } from '../auth/asker.js';
import { markReplay } from '../http/replay.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';

/** Answers to runs that wait: with a credential, or with a signed token that is one. (execution §3.3) */
@Controller()
export class InterruptsController {
  constructor(private readonly bus: Bus) {}

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

  /** The question alone, to be shown to whoever answers. (suspend-request.schema.json: closed) */
  @Route(ROUTES.inspectInterrupt)
  async inspect(@Ask() { params }: Asked<typeof ROUTES.inspectInterrupt>, @Res({ passthrough: true }) reply: FastifyReply) {
    const { interrupt } = await this.bus.call(engine.inspectToken, params).catch(asUnknown);
    reply.header('cache-control', 'no-store');
    return { kind: interrupt.kind, key: interrupt.key, data: interrupt.payload };
  }

  @Route(ROUTES.resolveInterruptByToken)
  async resolveByToken(
    @Ask() { params, body, idempotency }: Asked<typeof ROUTES.resolveInterruptByToken>,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const wish = { ...params, resumeValue: body.resumeValue, ...(idempotency && { idempotency }) };
    const { replayed, ...answer } = await this.bus.call(engine.resolveToken, wish).catch(asUnknown);
    reply.header('cache-control', 'no-store');
    markReplay(reply, replayed);
    return answer;
  }
}

/** A token that nobody minted and one of an interrupt that is not there are told apart by nobody outside. */
function asUnknown(error: unknown): never {
  throw isWopError(error) && error.code === 'interrupt_token_invalid'
    ? new WopError('interrupt_not_found', 'There is no such interrupt token.')
    : error;
}
