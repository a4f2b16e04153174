import { Injectable } from '@nestjs/common';
import { inTransaction } from '@isthmus/db';
import type { ToolReply } from '@isthmus/protocol';
import type pg from 'pg';

export type Outcome =
  | { readonly is: 'reply'; readonly reply: ToolReply }
  | { readonly is: 'error'; readonly error: { readonly error: string; readonly message: string; readonly details?: object } };
export type Claimed =
  /** Ours to send for the first time. */
  | { readonly is: 'fresh' }
  /** An earlier worker claimed it and left no outcome: it may have been sent. */
  | { readonly is: 'unknown' }
  | { readonly is: 'done'; readonly outcome: Outcome };

type Round = {
  readonly tenant: string;
  readonly runId: string;
  readonly nodeId: string;
  readonly invocationId: string;
  readonly attempt: number;
  readonly round: number;
  readonly epoch: number;
};

/** Layer 2: what was sent to the outside, and what came back. Claimed before the effect, so that no two workers send it unknowingly. */
@Injectable()
export class Invocations {
  constructor(private readonly pool: pg.Pool) {}

  async claim({ tenant, runId, nodeId, invocationId, attempt, round, epoch }: Round, at: Date): Promise<Claimed> {
    return inTransaction(this.pool, tenant, async (client) => {
      const inserted = await client.query(
        'insert into engine.invocations (invocation_id, round, tenant, run_id, node_id, epoch, claimed_at, attempt) values ($1,$2,$3,$4,$5,$6,$7,$8) on conflict do nothing',
        [invocationId, round, tenant, runId, nodeId, epoch, at, attempt],
      );
      if (inserted.rowCount === 1) return { is: 'fresh' };
      const { rows } = await client.query<{ outcome: Outcome | null }>(
        'select outcome from engine.invocations where invocation_id = $1 and round = $2 and attempt = $3',
        [invocationId, round, attempt],
      );
      const outcome = rows[0]?.outcome;
      return outcome ? { is: 'done', outcome } : { is: 'unknown' };
    });
  }

  /** The first outcome stands. @returns the one that does: whoever enters again must come to the same */
  async record({ tenant, invocationId, attempt, round }: Round, outcome: Outcome, at: Date): Promise<Outcome> {
    return inTransaction(this.pool, tenant, async (client) => {
      const { rows } = await client.query<{ outcome: Outcome }>(
        `update engine.invocations set outcome = coalesce(outcome, $4), done_at = coalesce(done_at, $5)
         where invocation_id = $1 and round = $2 and attempt = $3 returning outcome`,
        [invocationId, round, attempt, JSON.stringify(outcome), at],
      );
      return rows[0]?.outcome ?? outcome;
    });
  }
}
