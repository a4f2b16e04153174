import { Injectable } from '@nestjs/common';
import { inTransaction } from '@isthmus/db';
import type { Json, JsonObject, RunStatus } from '@isthmus/protocol';
import type pg from 'pg';
import type { LoggedEvent, NewEvent, RunState, ValueRef } from '../core/state.js';
import { type Claimed, claimKey, type IdempotencyClaim } from './idempotency-keys.js';

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
  readonly family: Family;
  /** A pause that waits for the current nodes. */
  readonly pause: { readonly reason?: string; readonly by: string } | null;
};

/** Where a run comes from: a node of another run, or another run's log. */
export type Family = {
  readonly parentRun: string | null;
  readonly parentNode: string | null;
  /** The parent ended and takes this run along. */
  readonly isOrphaned: boolean;
  readonly sourceRun: string | null;
  readonly mode: 'replay' | 'branch' | null;
  /** Whose id the ids in the log are made of. */
  readonly idBase: string | null;
};
export const NO_FAMILY: Family = { parentRun: null, parentNode: null, isOrphaned: false, sourceRun: null, mode: null, idBase: null };

export type Page = { readonly run: RunRow; readonly events: readonly LoggedEvent[]; readonly more: boolean };

export type { IdempotencyClaim };
export type StoredValue = ValueRef & { readonly value: Json };

export type Creation = {
  readonly run: Omit<RunRow, 'status' | 'head' | 'epoch' | 'startedAt' | 'endedAt' | 'pause'>;
  /** Does the end of the parent end this run? */
  readonly propagate?: boolean;
  readonly values?: readonly StoredValue[];
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
  readonly idempotency?: Answered;
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

export type Fork = {
  readonly tenant: string;
  readonly workspace: string;
  readonly sourceRun: string;
  readonly runId: string;
  /** Events below it are copied; at least one. */
  readonly fromSequence: number;
  readonly mode: 'replay' | 'branch';
  readonly owner: string;
  readonly at: Date;
  readonly leaseUntil: Date;
  readonly options: RunRow['options'];
  readonly trace: RunRow['trace'];
  readonly status: RunStatus;
  readonly ended: boolean;
  readonly idempotency?: Answered;
};
/** A key with the answer that its repeats get. */
export type Answered = IdempotencyClaim & { readonly response: Json };
/** `missing`: there is no such run there, or not so much of it; the key stays free. */
export type Keyed = { readonly is: 'done' | 'missing' } | Exclude<Claimed, { is: 'claimed' }>;

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
  async create({ run, started, owner, at, leaseUntil, idempotency, values = [], propagate = true }: Creation): Promise<Created> {
    const parameters = [
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
      started.facts ? JSON.stringify(started.facts) : null,
      ...columnsOf(values),
      run.family.parentRun,
      run.family.parentNode,
      propagate,
    ];
    try {
      const { rows } = await this.pool.query<{ verdict: string; run: string; revision: number | null }>({
        name: 'create_run',
        text: 'select * from engine.create_run($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21,$22,$23,$24)',
        values: parameters,
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
          ...columnsOf(values),
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
      // A parent and its child that end at once may want each other's rows: whoever was picked tries again.
      if (isSqlState(error, '40001') || isSqlState(error, '40P01')) return { is: 'conflict' };
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

  /** Every value of a run. */
  async allValues(tenant: string, runId: string): Promise<ReadonlyMap<string, Json>> {
    const rows = await this.asTenant<{ ref: string; value: Json }>(tenant, 'select ref, value from engine.run_values where run_id = $1', [
      runId,
    ]);
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

  /** @returns the runs whose leases are still ours; true where something besides the log wants to be looked at */
  async renew(owner: string, held: readonly { runId: string; epoch: number }[], until: Date): Promise<ReadonlyMap<string, boolean>> {
    const { rows } = await this.pool.query<{ run: string; moved: boolean }>({
      name: 'renew',
      text: 'select run, moved from engine.renew($1,$2,$3,$4)',
      values: [owner, held.map(({ runId }) => runId), held.map(({ epoch }) => epoch), until],
    });
    return new Map(rows.map(({ run, moved }) => [run, moved]));
  }

  /** One commit: idempotency key, run and its history. */
  async fork(fork: Fork): Promise<Keyed> {
    return this.keyed(fork.tenant, fork.idempotency, fork.at, async (client) => {
      const { rows } = await client.query<{ forked: boolean }>({
        name: 'fork_run',
        text: 'select engine.fork_run($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13) as forked',
        values: [
          fork.tenant,
          fork.workspace,
          fork.sourceRun,
          fork.runId,
          fork.fromSequence,
          fork.mode,
          fork.owner,
          fork.at,
          fork.leaseUntil,
          JSON.stringify(fork.options),
          fork.trace ? JSON.stringify(fork.trace) : null,
          fork.status,
          fork.ended,
        ],
      });
      return rows[0]?.forked === true;
    });
  }

  /** `missing` also when the run has ended. */
  async wishPause(
    tenant: string,
    workspace: string,
    runId: string,
    pause: { reason?: string; by: string },
    at: Date,
    idempotency?: Answered,
  ): Promise<Keyed> {
    return this.keyed(tenant, idempotency, at, async (client) => {
      const { rows } = await client.query<{ wished: boolean }>({
        name: 'wish_pause',
        text: 'select engine.wish_pause($1,$2,$3,$4,$5) as wished',
        values: [tenant, workspace, runId, JSON.stringify(pause), at],
      });
      return rows[0]?.wished === true;
    });
  }

  /** `work` together with its key, or neither. */
  private async keyed(
    tenant: string,
    idempotency: Answered | undefined,
    at: Date,
    work: (client: Pick<pg.ClientBase, 'query'>) => Promise<boolean>,
  ): Promise<Keyed> {
    if (!idempotency) return { is: (await work(this.pool)) ? 'done' : 'missing' };
    const { response, ...claim } = idempotency;
    try {
      return await inTransaction(this.pool, tenant, async (client) => {
        const claimed = await claimKey(client, tenant, claim, response, at);
        if (claimed.is !== 'claimed') return claimed;
        if (!(await work(client))) throw new NothingThere();
        return { is: 'done' };
      });
    } catch (error) {
      if (error instanceof NothingThere) return { is: 'missing' };
      throw error;
    }
  }

  async children(tenant: string, runId: string): Promise<readonly { runId: string; status: RunStatus }[]> {
    const { rows } = await this.pool.query({
      name: 'children',
      text: 'select run as "runId", status from engine.children($1,$2)',
      values: [tenant, runId],
    });
    return rows;
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

/** Rolls a transaction back, with the key it had claimed. */
class NothingThere extends Error {}

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
    pause: row['pause'] ?? null,
    family: {
      parentRun: row['parent_run'] ?? null,
      parentNode: row['parent_node'] ?? null,
      isOrphaned: row['orphaned_at'] !== null && row['orphaned_at'] !== undefined,
      sourceRun: row['source_run'] ?? null,
      mode: row['mode'] ?? null,
      idBase: row['id_base'] ?? null,
    },
  } as RunRow;
}

const columnsOf = (values: readonly StoredValue[]): [string[] | null, string[] | null, boolean[] | null] =>
  values.length === 0
    ? [null, null, null]
    : [values.map(({ ref }) => ref), values.map(({ value }) => JSON.stringify(value)), values.map(({ untrusted }) => untrusted)];

/** Every ref that a state holds: what a reader of it may have to load. */
export function refsOf(state: RunState): readonly string[] {
  const stored = [...state.variables.values(), ...[...state.nodes.values()].flatMap(({ outputs }) => (outputs ? [outputs] : []))];
  const artifacts = [...state.interrupts.values()].flatMap(({ artifact }) => (artifact ? [artifact.ref] : []));
  const inputs = Object.values(state.inputRefs).map(({ ref }) => ref);
  return [...new Set([...stored.flatMap((value) => (value.is === 'ref' ? [value.ref] : [])), ...artifacts, ...inputs])];
}
