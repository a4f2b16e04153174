import { inTransaction } from '@isthmus/db';
import type { WebhookSpec } from '@isthmus/protocol';
import type pg from 'pg';
import { claimKey, type Claimed, type IdempotencyClaim } from '../store/idempotency-keys.js';

type Place = { readonly tenant: string; readonly workspace: string };

export type Subscription = {
  readonly webhookId: string;
  readonly url: string;
  readonly events: string[];
  readonly tags: string[] | null;
  readonly secret: string;
  readonly createdAt: Date;
};
export type NewSubscription = Omit<Subscription, 'events' | 'tags' | 'createdAt'> & Pick<WebhookSpec, 'events' | 'tags'>;

const COLUMNS = 'webhook_id as "webhookId", url, events, tags, secret, created_at as "createdAt"';

/** Who wants to hear of the runs of a workspace. Row-level security holds the tenant, every statement names the workspace. */
export class Subscriptions {
  constructor(private readonly pool: pg.Pool) {}

  /** One commit: the key, if there is one, and the subscription. The key keeps the id only, so the secret stands in one place. */
  async add(place: Place, principal: string, wanted: NewSubscription, at: Date, idempotency?: IdempotencyClaim): Promise<Claimed> {
    const { tenant, workspace } = place;
    const { webhookId, url, events, tags, secret } = wanted;
    return inTransaction(this.pool, tenant, async (client) => {
      const claimed = idempotency && (await claimKey(client, tenant, idempotency, { webhookId }, at));
      if (claimed && claimed.is !== 'claimed') return claimed;
      await client.query(
        `insert into engine.webhooks (webhook_id, tenant, workspace, created_by, url, events, tags, secret, created_at)
         values ($1,$2,$3,$4,$5,$6,$7,$8,$9)`,
        [webhookId, tenant, workspace, principal, url, events, tags ?? null, secret, at],
      );
      return { is: 'claimed' };
    });
  }

  async find({ tenant, workspace }: Place, webhookId: string): Promise<Subscription | undefined> {
    return inTransaction(this.pool, tenant, async (client) => {
      const { rows } = await client.query<Subscription>(
        `select ${COLUMNS} from engine.webhooks where tenant = $1 and workspace = $2 and webhook_id = $3`,
        [tenant, workspace, webhookId],
      );
      return rows[0];
    });
  }

  /** By id, ascending, after `after`. */
  async list({ tenant, workspace }: Place, after: string, limit: number): Promise<readonly Subscription[]> {
    return inTransaction(this.pool, tenant, async (client) => {
      const { rows } = await client.query<Subscription>(
        `select ${COLUMNS} from engine.webhooks where tenant = $1 and workspace = $2 and webhook_id > $3 order by webhook_id limit $4`,
        [tenant, workspace, after, limit],
      );
      return rows;
    });
  }

  /** With what waits for it. @returns false when there is none there */
  async remove({ tenant, workspace }: Place, webhookId: string): Promise<boolean> {
    return inTransaction(this.pool, tenant, async (client) => {
      const { rowCount } = await client.query('delete from engine.webhooks where tenant = $1 and workspace = $2 and webhook_id = $3', [
        tenant,
        workspace,
        webhookId,
      ]);
      if (rowCount === 0) return false;
      await client.query('delete from engine.webhook_deliveries where webhook_id = $1', [webhookId]);
      return true;
    });
  }
}
