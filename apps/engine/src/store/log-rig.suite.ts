import { randomUUID } from 'node:crypto';
import { pgPool } from '@isthmus/db';
import { type TestDatabase, testDatabase } from '@isthmus/testing';
import type pg from 'pg';
import type { NewEvent } from '../core/state.js';
import { began, started } from '../core/given.suite.js';
import { type Appended, type Appending, type Creation, NO_FAMILY, RunLog } from './run-log.js';

export const AT = new Date('2026-07-28T12:00:00Z');
export const at = (ms: number): Date => new Date(AT.getTime() + ms);
export const LEASE = at(6_000);

type RunRecord = {
  head: number;
  epoch: number;
  status: string;
  lease_owner: string | null;
  due_at: Date | null;
  ended_at: Date | null;
  takeovers: number;
};

/** The run log over a database of its own, as the engine logs in; and the administrator, who sees everything. */
export class LogRig {
  private constructor(
    readonly database: TestDatabase,
    readonly pool: pg.Pool,
    readonly admin: pg.Pool,
    readonly log: RunLog,
  ) {}

  static async start(): Promise<LogRig> {
    const database = await testDatabase();
    const open = (url: string) => pgPool(url, { max: 12, onError: () => undefined });
    const pool = open(database.serviceUrl('engine'));
    const rig = new LogRig(database, pool, open(database.adminUrl), new RunLog(pool));
    for (const tenant of ['a', 'b']) await rig.workflow(tenant);
    return rig;
  }

  async stop(): Promise<void> {
    await Promise.all([this.pool.end(), this.admin.end()]);
    await this.database.drop();
  }

  /** Workflow `w` of the tenant at a revision. */
  async workflow(tenant: string, revision = 1): Promise<void> {
    await this.admin.query(
      `insert into engine.workflows values ($1, 'ws', 'w', $2, 'w', now()) on conflict (tenant, workspace, workflow_id) do update set revision = $2`,
      [tenant, revision],
    );
  }

  creation(
    rest: { tenant?: string; owner?: string; revision?: number; workspace?: string; idempotency?: Creation['idempotency'] } = {},
  ): Creation {
    const { tenant = 'a', owner = 'engine-1', revision = 1, workspace = 'ws', idempotency } = rest;
    return {
      run: {
        runId: randomUUID(),
        tenant,
        workspace,
        principal: 'p',
        workflowId: 'w',
        revision,
        transport: 'rest',
        trust: 'trusted',
        options: {},
        trace: null,
        family: NO_FAMILY,
      },
      started: started({ n: 1 }) as Creation['started'],
      owner,
      at: AT,
      leaseUntil: LEASE,
      ...(idempotency && { idempotency }),
    };
  }

  /** A run that `engine-1` holds at epoch 1, head 0. */
  async create(rest: Parameters<LogRig['creation']>[0] = {}): Promise<string> {
    const creation = this.creation(rest);
    await this.log.create(creation);
    return creation.run.runId;
  }

  append(runId: string, rest: Partial<Appending> = {}): Promise<Appended> {
    return this.log.append({
      tenant: 'a',
      runId,
      expected: 0,
      epoch: 1,
      owner: 'engine-1',
      at: at(1),
      events: [began('n')],
      status: 'running',
      ended: false,
      release: false,
      due: LEASE,
      ...rest,
    });
  }

  /** A wish of people: without a lease. */
  command(runId: string, rest: Partial<Appending> = {}): Promise<Appended> {
    return this.append(runId, { epoch: null, owner: 'engine-2', ...rest });
  }

  end(runId: string, expected = 0): Promise<Appended> {
    const cancelled = { type: 'run.cancelled', payload: {} } as NewEvent;
    return this.command(runId, { expected, events: [cancelled], status: 'cancelled', ended: true, release: true, due: null });
  }

  async row(runId: string): Promise<RunRecord> {
    const { rows } = await this.admin.query<RunRecord>('select * from engine.runs where run_id = $1', [runId]);
    const [row] = rows;
    if (!row) throw new Error('no such run');
    return row;
  }

  async types(runId: string): Promise<string[]> {
    const { rows } = await this.admin.query<{ type: string }>('select type from engine.events where run_id = $1 order by sequence', [
      runId,
    ]);
    return rows.map(({ type }) => type);
  }
}
