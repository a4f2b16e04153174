import { Controller, Res } from '@nestjs/common';
import { Bus } from '@isthmus/messaging';
import { type Caller, ROUTES, WopError, webhooks } from '@isthmus/protocol';
import type { FastifyReply } from 'fastify';
import type { Asker } from '../auth/asker.js';
import { markReplay } from '../http/replay.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';

@Controller()
export class WebhooksController {
  constructor(private readonly bus: Bus) {}

  @Route(ROUTES.createWebhook)
  async create(
    @Ask() { body: { tenantId, ...spec }, idempotency }: Asked<typeof ROUTES.createWebhook>,
    @By() { caller, passport }: Asker,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    if (isForeign(tenantId, caller)) throw new WopError('forbidden', 'tenantId names another tenant than that of the credential.');
    const { replayed, ...registered } = await this.bus.call(
      webhooks.registerWebhook,
      { spec, ...(idempotency && { idempotency }) },
      { passport },
    );
    markReplay(reply, replayed);
    return registered;
  }

  @Route(ROUTES.deleteWebhook)
  async delete(@Ask() { params, query }: Asked<typeof ROUTES.deleteWebhook>, @By() { caller, passport }: Asker): Promise<void> {
    if (isForeign(query.tenantId, caller)) throw new WopError('subscription_not_found', 'There is no such webhook.');
    await this.bus.call(webhooks.removeWebhook, params, { passport });
  }
}

/** The member is older than workspaces: clients fill in either, and a credential has one of each. (webhooks.md 1.2) */
const isForeign = (tenantId: string | undefined, { tenant, workspace }: Caller): boolean =>
  tenantId !== undefined && tenantId !== tenant && tenantId !== workspace;
