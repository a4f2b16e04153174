import { inTransaction } from '@isthmus/db';
import type pg from 'pg';
import { afterFailure, PROBE_MS, retryAt } from './back-off.js';
import type { DeliveryKey, StoredEvent } from './message.js';
import type { WebhookSettings } from './settings.js';

/** A delivery this process may send now. `attempt` counts from 1 and tells two claims of one delivery apart. */
export type ClaimedDelivery = DeliveryKey & { readonly tenant: string; readonly attempt: number };

export type Letter = {
  readonly url: string;
  readonly secret: string;
  readonly workspace: string;
  /** Null: the history of the run is no longer kept. */
  readonly event: StoredEvent | null;
};

export type Wanted = {
  readonly at: Date;
  /** End of the claim: whoever has not told by then is taken for dead. */
  readonly until: Date;
  readonly after: string;
  /** Tenants that have enough on the way here. */
  readonly busy: readonly string[];
  readonly tenants: number;
  readonly perTenant: number;
  readonly limit: number;
};

/** What is still to be told. Every call but that of a failure is one round trip. */
export class Deliveries {
  constructor(private readonly pool: pg.Pool) {}

  /** Does anybody in the whole host listen? */
  async areWanted(): Promise<boolean> {
    const { rows } = await this.pool.query<{ any: boolean }>({ name: 'has_webhooks', text: 'select engine.has_webhooks() as any' });
    return rows[0]?.any === true;
  }

  /** Due deliveries, and the tenant to go on after. */
  async claim({ at, until, after, busy, tenants, perTenant, limit }: Wanted): Promise<{ claims: ClaimedDelivery[]; cursor: string }> {
    const { rows: claims } = await this.pool.query<ClaimedDelivery>({
      name: 'claim_deliveries',
      text: `select tenant, webhook as "webhookId", run as "runId", sequence, attempt from engine.claim_deliveries($1,$2,$3,$4,$5,$6,$7)`,
      values: [at, until, after, busy, tenants, perTenant, limit],
    });
    if (claims.length === limit)
      return {
        claims,
        cursor:
          claims
            .map(({ tenant }) => tenant)
            .sort()
            .at(-1) ?? '',
      };
    const { rows } = await this.pool.query<{ cursor: string | null }>({
      name: 'delivery_cursor',
      text: 'select engine.delivery_cursor($1,$2) as cursor',
      values: [after, tenants],
    });
    return { claims, cursor: rows[0]?.cursor ?? '' };
  }

  /** Undefined when the subscription is gone. */
  async read({ tenant, webhookId, runId, sequence }: ClaimedDelivery): Promise<Letter | undefined> {
    const { rows } = await this.pool.query<Letter>({
      name: 'read_delivery',
      text: 'select url, secret, workspace, event from engine.read_delivery($1,$2,$3,$4)',
      values: [tenant, webhookId, runId, sequence],
    });
    return rows[0];
  }

  async delivered({ tenant, webhookId, runId, sequence }: ClaimedDelivery, at: Date): Promise<void> {
    await this.pool.query({
      name: 'delivered',
      text: 'select engine.delivered($1,$2,$3,$4,$5)',
      values: [tenant, webhookId, runId, sequence, at],
    });
  }

  /** Nobody wants it any more. */
  async drop(claim: ClaimedDelivery): Promise<void> {
    await inTransaction(this.pool, claim.tenant, (client) =>
      client.query('delete from engine.webhook_deliveries where webhook_id = $1 and run_id = $2 and sequence = $3', keyOf(claim)),
    );
  }

  /** Gives it up; the row stays and says why. */
  async bury(claim: ClaimedDelivery, problem: string): Promise<void> {
    await inTransaction(this.pool, claim.tenant, (client) => end(client, claim, null, problem));
  }

  /**
   * It did not arrive: later again, or dead. The endpoint's row is locked first, so that failures in parallel count one by one.
   * @returns when it goes again; undefined: never
   */
  async failed(claim: ClaimedDelivery, problem: string, at: number, { retry, breaker }: WebhookSettings): Promise<Date | undefined> {
    return inTransaction(this.pool, claim.tenant, async (client) => {
      const { rows } = await client.query<{ failures: number; openUntil: Date | null }>(
        'select failures, open_until as "openUntil" from engine.webhooks where webhook_id = $1 for update',
        [claim.webhookId],
      );
      const [row] = rows;
      if (!row) return void (await end(client, claim, null, problem));
      const before = { failures: row.failures, openUntil: row.openUntil?.getTime() ?? null };
      const { failures, openUntil } = afterFailure(breaker, before, at);
      const again = retryAt(retry, claim.attempt, at);
      const due = again === undefined ? null : new Date(Math.max(again, openUntil ?? 0));
      await end(client, claim, due, problem);
      if (failures !== before.failures) {
        const open = openUntil === null ? null : new Date(openUntil);
        await client.query('update engine.webhooks set failures = $2, open_until = $3 where webhook_id = $1', [
          claim.webhookId,
          failures,
          open,
        ]);
        if (open) await leaveAlone(client, claim.webhookId, open);
      }
      return due ?? undefined;
    });
  }
}

const keyOf = ({ webhookId, runId, sequence }: DeliveryKey): unknown[] => [webhookId, runId, sequence];

/** Only while the claim is still this one: a late word about an earlier attempt changes nothing. */
const end = (client: pg.PoolClient, claim: ClaimedDelivery, due: Date | null, problem: string) =>
  client.query(
    `update engine.webhook_deliveries set status = $5, due_at = $6, problem = $7
     where webhook_id = $1 and run_id = $2 and sequence = $3 and attempts = $4`,
    [...keyOf(claim), claim.attempt, due ? 'waiting' : 'dead', due, problem],
  );

/** Everything that waits for the endpoint waits until `open`, but for the oldest, which goes first to look. Rides the primary key. */
async function leaveAlone(client: pg.PoolClient, webhookId: string, open: Date): Promise<void> {
  await client.query(
    `with probe as (
       select run_id, sequence from engine.webhook_deliveries
       where webhook_id = $1 and status = 'waiting' order by created_at, sequence limit 1
     )
     update engine.webhook_deliveries d
     set due_at = case when (d.run_id, d.sequence) in (select run_id, sequence from probe) then $3::timestamptz else $2::timestamptz end
     where d.webhook_id = $1 and d.status = 'waiting' and d.due_at <= $2`,
    [webhookId, open, new Date(open.getTime() - PROBE_MS)],
  );
}
