import { Injectable } from '@nestjs/common';
import { inTransaction } from '@isthmus/db';
import type { Json, JsonObject, RunStatus } from '@isthmus/protocol';
import type pg from 'pg';
import type { LoggedEvent, NewEvent, RunState, ValueRef } from '../core/state.js';

/** A run as its row says, without its log. */
export type RunRow = {
  readonly runId: string;
  readonly tenant: string;
  readonly workspace: string;
  readonly principal: string;
  readonly workflowId: string;
  readonly revision: number;
  readonly status: RunStatus;
  readonly head: number;
  readonly epoch: number;
  readonly transport: 'rest' | 'mcp';
  readonly trust: 'trusted' | 'untrusted';
  readonly options: { readonly configurable?: JsonObject; readonly tags?: readonly string[]; readonly metadata?: JsonObject };
  readonly trace: { readonly traceparent?: string; readonly tracestate?: string } | null;
  readonly startedAt: Date;
  readonly endedAt: Date | null;
};

export type Page = { readonly run: RunRow; readonly events: readonly LoggedEvent[]; readonly more: boolean };

export type IdempotencyClaim = { readonly endpoint: string; readonly keyHash: string; readonly digest: string };
export type StoredValue = ValueRef & { readonly value: Json };

export type Creation = {
  readonly run: Omit<RunRow, 'status' | 'head' | 'epoch' | 'startedAt' | 'endedAt'>;
  readonly started: NewEvent<'run.started'>;
  readonly owner: string;
  readonly at: Date;
  readonly leaseUntil: Date;
  readonly idempotency?: IdempotencyClaim;
};
export type Created =
  | { readonly is: 'created' | 'replayed'; readonly runId: string }
  | { readonly is: 'mismatch' }
  /** The workflow has another revision by now; null: it is gone. */
  | { readonly is: 'stale'; readonly revision: number | null };

export type Appending = {
  readonly tenant: string;
  readonly runId: string;
  /** The head the caller folded to. */
  readonly expected: number;
  /** A worker's lease; null for a command, which takes the lease when nobody has it. */
  readonly epoch: number | null;
  readonly owner: string;
  readonly at: Date;
  readonly events: readonly NewEvent[];
  readonly status: RunStatus;
  readonly ended: boolean;
  /** Give the lease back (worker), or do not take it (command). */
  readonly release: boolean;
  /** End of the lease, or with `release` the run's next timer; null: nobody needs to look. */
  readonly due: Date | null;
  readonly values?: readonly StoredValue[];
  readonly idempotency?: IdempotencyClaim & { readonly response: Json };
};
export type Appended =
  /** `epoch`: of the lease, when the caller holds it now. */
  | { readonly is: 'ok'; readonly epoch: number | null }
  /** Someone else appended first: fold again, decide again. */
  | { readonly is: 'conflict' }
  /** The lease is another worker's by now. */
  | { readonly is: 'fenced' }
  | { readonly is: 'replayed'; readonly response: Json }
  | { readonly is: 'mismatch' };

export type Claim = { readonly tenant: string; readonly runId: string; readonly epoch: number; readonly takeovers: number };

type EventTuple = [
  sequence: number,
  type: string,
  payload: Json,
  facts: LoggedEvent['facts'] | null,
  causationId: string | null,
  untrusted: boolean,
  at: number,
];

/** Runs and their logs in Postgres. Every call is one round trip: a function that sets the tenant before it looks. */
@Injectable()
export class RunLog {
  constructor(private readonly pool: pg.Pool) {}

  /** One commit: idempotency key, run and `run.started`. */
  async create({ run, started, owner, at, leaseUntil, idempotency }: Creation): Promise<Created> {
    const values = [
      run.tenant,
      run.workspace,
      run.principal,
      run.runId,
      run.workflowId,
      run.revision,
      owner,
      at,
      leaseUntil,
      run.transport,
      run.trust,
      JSON.stringify(run.options),
      run.trace ? JSON.stringify(run.trace) : null,
      JSON.stringify(started.payload),
      idempotency?.endpoint ?? null,
      idempotency?.keyHash ?? null,
      idempotency?.digest ?? null,
    ];
    try {
      const { rows } = await this.pool.query<{ verdict: string; run: string; revision: number | null }>({
        name: 'create_run',
        text: 'select * from engine.create_run($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17)',
        values,
      });
      const [row] = rows;
      if (row?.verdict === 'created' || row?.verdict === 'replayed') return { is: row.verdict, runId: row.run };
      return row?.verdict === 'mismatch' ? { is: 'mismatch' } : { is: 'stale', revision: row?.revision ?? null };
    } catch (error) {
      // With a key the whole transaction is undone, so that the key stays free for the next try.
      if (isSqlState(error, 'P0001')) return { is: 'stale', revision: Number(error.detail) || null };
      throw error;
    }
  }

  async append(appending: Appending): Promise<Appended> {
    const { events, values = [], idempotency } = appending;
    try {
      const { rows } = await this.pool.query<{ verdict: Appended['is']; epoch: number | null; response: Json }>({
        name: 'append',
        text: 'select * from engine.append($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21,$22)',
        values: [
          appending.tenant,
          appending.runId,
          appending.expected,
          appending.epoch,
          appending.owner,
          appending.at,
          appending.status,
          appending.release,
          appending.due,
          appending.ended,
          events.map(({ type }) => type),
          events.map(({ payload }) => JSON.stringify(payload)),
          events.map(({ facts }) => (facts && Object.keys(facts).length > 0 ? JSON.stringify(facts) : null)),
          events.map(({ causationId }) => causationId ?? null),
          events.map(({ untrusted }) => untrusted === true),
          values.length > 0 ? values.map(({ ref }) => ref) : null,
          values.length > 0 ? values.map(({ value }) => JSON.stringify(value)) : null,
          values.length > 0 ? values.map(({ untrusted }) => untrusted) : null,
          idempotency?.endpoint ?? null,
          idempotency?.keyHash ?? null,
          idempotency?.digest ?? null,
          idempotency ? JSON.stringify(idempotency.response) : null,
        ],
      });
      const [row] = rows;
      if (row?.verdict === 'ok') return { is: 'ok', epoch: row.epoch };
      if (row?.verdict === 'replayed') return { is: 'replayed', response: row.response };
      return { is: row?.verdict === 'fenced' || row?.verdict === 'mismatch' ? row.verdict : 'conflict' };
    } catch (error) {
      if (isSqlState(error, '40001')) return { is: 'conflict' };
      throw error;
    }
  }

  /**
   * The same log, while nobody else can append to the run: the row's lock (runs_pkey) holds them until `work` has ended and is
   * committed.
   */
  async alone<T>(tenant: string, runId: string, work: (log: Pick<RunLog, 'read' | 'append'>) => Promise<T>): Promise<T> {
    return inTransaction(this.pool, tenant, async (client) => {
      await client.query('select from engine.runs where run_id = $1 for update', [runId]);
      // One connection answers queries as a pool does.
      return work(new RunLog(client as unknown as pg.Pool));
    });
  }

  /** @param workspace of the asker; null for the driver itself. Undefined when there is no such run there. */
  async read(
    tenant: string,
    workspace: string | null,
    runId: string,
    fromSequence = 0,
    maxBytes = Number.MAX_SAFE_INTEGER,
  ): Promise<Page | undefined> {
    const { rows } = await this.pool.query<{ run: Record<string, unknown> | null; events: EventTuple[]; more: boolean }>({
      name: 'read_run',
      text: 'select * from engine.read_run($1,$2,$3,$4,$5)',
      values: [tenant, workspace, runId, fromSequence, maxBytes],
    });
    const [row] = rows;
    return row?.run ? { run: runRow(row.run), events: row.events.map(loggedEvent), more: row.more } : undefined;
  }

  /** Values by ref. */
  async values(tenant: string, runId: string, refs: readonly string[]): Promise<ReadonlyMap<string, Json>> {
    if (refs.length === 0) return new Map();
    const rows = await this.asTenant<{ ref: string; value: Json }>(
      tenant,
      'select ref, value from engine.run_values where run_id = $1 and ref = any($2)',
      [runId, refs],
    );
    return new Map(rows.map(({ ref, value }) => [ref, value]));
  }

  /** What an earlier request with the key was answered. */
  async answered(tenant: string, { endpoint, keyHash }: IdempotencyClaim): Promise<{ digest: string; response: Json } | undefined> {
    const rows = await this.asTenant<{ digest: string; response: Json }>(
      tenant,
      'select digest, response from engine.idempotency where tenant = $1 and endpoint = $2 and key_hash = $3',
      [tenant, endpoint, keyHash],
    );
    return rows[0];
  }

  async heads(runIds: readonly string[]): Promise<readonly { runId: string; head: number; status: RunStatus }[]> {
    const { rows } = await this.pool.query({
      name: 'heads',
      text: 'select run as "runId", head, status from engine.heads($1)',
      values: [runIds],
    });
    return rows;
  }

  async list(
    tenant: string,
    workspace: string,
    filter: { before?: string; statuses?: readonly string[]; workflowId?: string; tag?: string; limit: number },
  ): Promise<readonly RunRow[]> {
    const { rows } = await this.pool.query<{ row: Record<string, unknown> }>({
      name: 'list_runs',
      text: 'select row_to_json(r) as row from engine.list_runs($1,$2,$3,$4,$5,$6,$7) r',
      values: [
        tenant,
        workspace,
        filter.before ?? null,
        filter.statuses ?? null,
        filter.workflowId ?? null,
        filter.tag ?? null,
        filter.limit,
      ],
    });
    return rows.map(({ row }) => runRow(row));
  }

  /** Undone when the log has grown past `expected`, or the lease is another's. */
  async release(tenant: string, runId: string, epoch: number, expected: number, due: Date | null): Promise<boolean> {
    const { rows } = await this.pool.query<{ released: boolean }>({
      name: 'release',
      text: 'select engine.release($1,$2,$3,$4,$5) as released',
      values: [tenant, runId, epoch, expected, due],
    });
    return rows[0]?.released === true;
  }

  async claim(owner: string, runId: string, at: Date, until: Date): Promise<Claim | undefined> {
    const { rows } = await this.pool.query<Claim>({
      name: 'claim_run',
      text: 'select tenant, run as "runId", epoch, takeovers from engine.claim_run($1,$2,$3,$4)',
      values: [owner, runId, at, until],
    });
    return rows[0];
  }

  /** Due runs of at most `tenants` tenants after `after`, at most `perTenant` of each; and where to go on. */
  async claimDue(
    owner: string,
    at: Date,
    until: Date,
    after: string,
    tenants: number,
    perTenant: number,
  ): Promise<{ claims: readonly Claim[]; cursor: string }> {
    const claims = await this.pool.query<Claim>({
      name: 'claim_due',
      text: 'select tenant, run as "runId", epoch, takeovers from engine.claim_due($1,$2,$3,$4,$5,$6)',
      values: [owner, at, until, after, tenants, perTenant],
    });
    const { rows } = await this.pool.query<{ cursor: string | null }>({
      name: 'claim_cursor',
      text: 'select engine.claim_cursor($1,$2) as cursor',
      values: [after, tenants],
    });
    return { claims: claims.rows, cursor: rows[0]?.cursor ?? '' };
  }

  /** @returns the runs whose leases are still ours */
  async renew(owner: string, held: readonly { runId: string; epoch: number }[], until: Date): Promise<ReadonlySet<string>> {
    const { rows } = await this.pool.query<{ run: string }>({
      name: 'renew',
      text: 'select run from engine.renew($1,$2,$3,$4)',
      values: [owner, held.map(({ runId }) => runId), held.map(({ epoch }) => epoch), until],
    });
    return new Set(rows.map(({ run }) => run));
  }

  /** The database's clock, in milliseconds. */
  async now(): Promise<number> {
    const { rows } = await this.pool.query<{ now: number }>('select (extract(epoch from clock_timestamp()) * 1000)::float8 as now');
    return rows[0]?.now ?? Number.NaN;
  }

  /** One transaction in one flight: the tenant is set before the statement looks. */
  private async asTenant<Row extends pg.QueryResultRow>(tenant: string, text: string, values: unknown[]): Promise<Row[]> {
    return inTransaction(this.pool, tenant, async (client) => (await client.query<Row>(text, values)).rows);
  }
}

export const isSqlState = (error: unknown, state: string): error is Error & { code: string; detail?: string } =>
  error instanceof Error && (error as { code?: unknown }).code === state;

const loggedEvent = ([sequence, type, payload, facts, causationId, untrusted, at]: EventTuple): LoggedEvent =>
  ({
    sequence,
    type,
    payload,
    at,
    ...(facts && { facts }),
    ...(causationId && { causationId }),
    ...(untrusted && { untrusted }),
  }) as unknown as LoggedEvent;

function runRow(row: Record<string, unknown>): RunRow {
  return {
    runId: row['run_id'],
    tenant: row['tenant'],
    workspace: row['workspace'],
    principal: row['principal'],
    workflowId: row['workflow_id'],
    revision: row['revision'],
    status: row['status'],
    head: row['head'],
    epoch: row['epoch'],
    transport: row['transport'],
    trust: row['trust'],
    options: row['options'],
    trace: row['trace'] ?? null,
    startedAt: new Date(row['started_at'] as string),
    endedAt: row['ended_at'] ? new Date(row['ended_at'] as string) : null,
  } as RunRow;
}

/** Every ref that a state holds: what a reader of it may have to load. */
export function refsOf(state: RunState): readonly string[] {
  const stored = [...state.variables.values(), ...[...state.nodes.values()].flatMap(({ outputs }) => (outputs ? [outputs] : []))];
  const artifacts = [...state.interrupts.values()].flatMap(({ artifact }) => (artifact ? [artifact.ref] : []));
  return [...new Set([...stored.flatMap((value) => (value.is === 'ref' ? [value.ref] : [])), ...artifacts])];
}
