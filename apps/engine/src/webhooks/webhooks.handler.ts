import { randomBytes } from 'node:crypto';
import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { Clock, Ids } from '@isthmus/chassis';
import { Egress } from '@isthmus/egress';
import { From, Handle } from '@isthmus/messaging';
import { type Caller, type Json, type Output, type Parsed, WopError, webhooks } from '@isthmus/protocol';
import { mismatch } from '../driver/commands.js';
import { afterOf, cursorAfter } from '../handlers/cursor.js';
import { RunLog } from '../store/run-log.js';
import { Deliverer } from './deliverer.js';
import { send } from './sender.js';
import { WEBHOOK_SETTINGS, type WebhookSettings } from './settings.js';
import { fingerprintOf } from './signature.js';
import { Subscriptions } from './subscriptions.js';
import { checkTarget, rejected } from './target.js';

type Registered = Output<typeof webhooks.registerWebhook>;

/** Who wants to hear of the runs of a workspace. */
@Controller()
export class WebhooksHandler {
  constructor(
    private readonly log: RunLog,
    private readonly subscriptions: Subscriptions,
    private readonly deliverer: Deliverer,
    private readonly egress: Egress,
    private readonly clock: Clock,
    private readonly ids: Ids,
    @Inject(WEBHOOK_SETTINGS) private readonly settings: WebhookSettings,
  ) {}

  @Handle(webhooks.registerWebhook)
  async register(@From() caller: Caller, @Payload() { spec, idempotency }: Parsed<typeof webhooks.registerWebhook>): Promise<Registered> {
    // Before the ping: a repeat costs the endpoint nothing.
    const known = idempotency && (await this.log.answered(caller.tenant, idempotency));
    if (known && known.digest !== idempotency.digest) throw mismatch();
    if (known) return this.again(caller, known.response);
    await checkTarget(spec.url, this.egress, this.settings);
    const webhookId = `wh_${this.ids.opaque(16)}`;
    const secret = spec.secret ?? `whsec_${randomBytes(32).toString('base64')}`;
    if (this.settings.verify) await this.ping(webhookId, spec.url, secret);
    const wanted = { webhookId, secret, url: spec.url, events: spec.events, ...(spec.tags && { tags: spec.tags }) };
    const added = await this.subscriptions.add(caller, caller.principal, wanted, this.clock.date(), idempotency);
    if (added.is === 'mismatch') throw mismatch();
    if (added.is === 'known') return this.again(caller, added.response);
    await this.deliverer.follow();
    return { webhookId, secret, secretFingerprint: fingerprintOf(secret), replayed: false };
  }

  @Handle(webhooks.removeWebhook)
  async remove(@From() caller: Caller, @Payload() { webhookId }: Parsed<typeof webhooks.removeWebhook>): Promise<Record<string, never>> {
    if (!(await this.subscriptions.remove(caller, webhookId))) throw notFound();
    return {};
  }

  @Handle(webhooks.listWebhooks)
  async list(
    @From() caller: Caller,
    @Payload() { cursor, limit }: Parsed<typeof webhooks.listWebhooks>,
  ): Promise<Output<typeof webhooks.listWebhooks>> {
    const after = cursor === undefined ? '' : afterOf(cursor, (text) => text.startsWith('wh_'));
    const found = await this.subscriptions.list(caller, after, limit + 1);
    const page = found.slice(0, limit);
    const last = page.at(-1);
    return {
      webhooks: page.map(({ secret, tags, createdAt, ...rest }) => ({
        ...rest,
        ...(tags && { tags }),
        secretFingerprint: fingerprintOf(secret),
        createdAt: createdAt.toISOString(),
      })),
      ...(found.length > limit && last && { nextCursor: cursorAfter(last.webhookId) }),
    };
  }

  /** Nobody is sent events who does not answer at all. Any 2xx will do. (rulings, "Webhooks") */
  private async ping(webhookId: string, url: string, secret: string): Promise<void> {
    const sent = await send(this.egress, url, secret, {
      webhookId,
      messageId: `msg_${webhookId}_ping`,
      timestamp: Math.floor(this.clock.now() / 1_000),
      body: JSON.stringify({ type: 'openwop.webhook.verification', webhookId, challenge: this.ids.opaque() }),
    });
    if (sent.is === 'failed') throw rejected('unverified', `did not answer a ping with 2xx (${sent.problem})`);
  }

  /** The first answer once more; the secret is told again to whoever has the key, for the answer may have been lost. (wire §8.1) */
  private async again(caller: Caller, response: Json): Promise<Registered> {
    const found = await this.subscriptions.find(caller, (response as { webhookId: string }).webhookId);
    if (!found) throw notFound();
    return { webhookId: found.webhookId, secret: found.secret, secretFingerprint: fingerprintOf(found.secret), replayed: true };
  }
}

const notFound = (): WopError => new WopError('subscription_not_found', 'There is no such webhook.');
