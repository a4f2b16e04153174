import { z } from 'zod';
import { contract } from '../contract.js';
import { type EventType, EVENTS } from '../events.js';
import { Idempotency } from './engine.js';

/** Every event there is, now and later. */
export const ANY_EVENT = '*';
const EventName = z.enum([ANY_EVENT, ...(Object.keys(EVENTS) as EventType[])]);

/** What is wanted: where to, which events, of which runs. Absent `tags`: of all runs of the workspace, else of those with one of them. */
export const WebhookSpec = z.strictObject({
  url: z.url().max(2_048),
  events: z.array(EventName).min(1).max(100),
  tags: z.array(z.string().min(1).max(256)).min(1).max(100).optional(),
  /** Absent: the host makes one. */
  secret: z.string().min(16).max(512).optional(),
});
export type WebhookSpec = z.infer<typeof WebhookSpec>;

/** Body of `POST /v1/webhooks`. `tenantId` may only repeat the credential's. (families §5) */
export const CreateWebhookBody = WebhookSpec.extend({ tenantId: z.string().min(1).max(128).optional() });

const WebhookId = z.string().min(1).max(128);

/** Contracts of the engine about webhooks: subscriptions of a workspace to the events of its runs. */
export const webhooks = {
  /**
   * `secret` is told here and never again. Errors: validation_error, webhook_url_rejected (not a target this host may call, or
   * one that did not answer the ping), idempotency_key_mismatch.
   */
  registerWebhook: contract('engine.webhook.register', {
    access: ['webhooks:manage'],
    deadlineMs: 10_000,
    input: z.strictObject({ spec: WebhookSpec, idempotency: Idempotency.optional() }),
    output: z.strictObject({ webhookId: WebhookId, secret: z.string(), secretFingerprint: z.string(), replayed: z.boolean() }),
  }),
  /** What waits for delivery goes with it. Errors: subscription_not_found. */
  removeWebhook: contract('engine.webhook.remove', {
    access: ['webhooks:manage'],
    input: z.strictObject({ webhookId: WebhookId }),
    output: z.strictObject({}),
  }),
  /** The subscriptions of the caller's workspace, without their secrets. */
  listWebhooks: contract('engine.webhook.list', {
    access: ['webhooks:manage'],
    input: z.strictObject({ cursor: z.string().optional(), limit: z.int().min(1).max(100).default(100) }),
    output: z.strictObject({
      nextCursor: z.string().optional(),
      webhooks: z.array(
        z.strictObject({
          webhookId: WebhookId,
          url: z.string(),
          events: z.array(z.string()),
          tags: z.array(z.string()).optional(),
          secretFingerprint: z.string(),
          createdAt: z.string(),
        }),
      ),
    }),
  }),
};
