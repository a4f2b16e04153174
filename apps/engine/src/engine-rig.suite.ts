import { Bus } from '@isthmus/messaging';
import {
  type Caller,
  type Contract,
  engine,
  type Input,
  isTerminal,
  type Output,
  type RunEvent,
  WorkflowDefinition,
} from '@isthmus/protocol';
import {
  type BootedService,
  type BootOptions,
  bootService,
  callerOf,
  type PassportIssuer,
  passportIssuer,
  type TestDatabase,
  testConnection,
  testDatabase,
  testNats,
  until,
} from '@isthmus/testing';
import pg from 'pg';
import { EngineModule } from './app.module.js';
import { Config } from './config.js';

type Connection = Awaited<ReturnType<typeof testConnection>>;
type NodeSpec = { id: string; typeId: string; config?: object; inputs?: object; outputRole?: 'primary'; disabled?: boolean };

/** Engines over a database of their own and the test's NATS; the test stands in for authz and mcp-client by answering their contracts. */
export class EngineRig {
  readonly engines: BootedService[] = [];
  private constructor(
    readonly database: TestDatabase,
    readonly connection: Connection,
    readonly issuer: PassportIssuer,
  ) {}

  static async start(count = 1, settings: Record<string, string> = {}): Promise<EngineRig> {
    const connection = await testConnection();
    const rig = new EngineRig(await testDatabase(), connection, await passportIssuer(connection));
    for (let made = 0; made < count; made += 1) await rig.boot(settings);
    return rig;
  }

  async boot(settings: Record<string, string> = {}, overrides: BootOptions['overrides'] = []): Promise<BootedService> {
    const config = Config.parse({
      SERVICE_NAME: 'engine',
      NATS_URL: testNats(),
      DATABASE_URL: this.database.serviceUrl('engine'),
      LEASE_MS: '1000',
      SWEEP_MS: '50',
      ...settings,
    });
    const booted = await bootService(EngineModule.forRoot(config), { service: 'engine', overrides });
    this.engines.push(booted);
    return booted;
  }

  get<T>(token: abstract new (...args: never[]) => T, index = 0): T {
    const booted = this.engines[index];
    if (!booted) throw new Error('no such engine');
    return booted.app.get(token as unknown as new () => T, { strict: false });
  }

  async call<C extends Contract>(contract: C, input: Input<C>, caller: Caller = callerOf()): Promise<Output<C>> {
    return this.get(Bus).call(contract, input, { passport: await this.issuer.passport(caller) });
  }

  /** Registers a workflow out of the parts that matter. Edges as `a>b` or `{id, sourceNodeId, …}`. */
  async register(
    id: string,
    nodes: readonly NodeSpec[],
    edges: readonly (string | object)[] = [],
    rest: object = {},
    caller?: Caller,
  ): Promise<void> {
    const definition = WorkflowDefinition.parse({
      id,
      name: id,
      nodes,
      edges: edges.map((edge) =>
        typeof edge === 'string'
          ? { id: `e-${edge.replace('>', '-')}`, sourceNodeId: edge.split('>')[0], targetNodeId: edge.split('>')[1] }
          : edge,
      ),
      ...rest,
    });
    await this.call(engine.putWorkflow, { definition }, caller);
  }

  async create(workflowId: string, input: Partial<Input<typeof engine.createRun>> = {}, caller?: Caller): Promise<string> {
    const { runId } = await this.call(engine.createRun, { workflowId, transport: 'rest', trust: 'trusted', ...input }, caller);
    return runId;
  }

  async read(runId: string, caller?: Caller): Promise<Output<typeof engine.readRun>> {
    return this.call(engine.readRun, { runId, want: ['events', 'snapshot', 'outcome'] }, caller);
  }

  /** Waits until the run has ended or waits for the outside. */
  async settled(runId: string, timeoutMs = 8_000): Promise<Output<typeof engine.readRun>> {
    let seen = await this.read(runId);
    await until(
      async () => {
        seen = await this.read(runId);
        return isTerminal(seen.status) || seen.status.startsWith('waiting-');
      },
      { timeoutMs },
    );
    return seen;
  }

  async ended(runId: string, timeoutMs = 10_000): Promise<Output<typeof engine.readRun>> {
    let seen = await this.read(runId);
    await until(
      async () => {
        seen = await this.read(runId);
        return isTerminal(seen.status);
      },
      { timeoutMs },
    );
    return seen;
  }

  /** As if the process that drives the run had stopped: its lease is over. Looks from above, as the administrator. */
  async expireLease(runId: string): Promise<void> {
    const client = new pg.Client({ connectionString: this.database.adminUrl });
    await client.connect();
    await client.query(
      `update engine.runs set epoch = epoch + 1, lease_owner = 'nobody', due_at = now() - interval '1 second' where run_id = $1`,
      [runId],
    );
    await client.end();
  }

  async stop(): Promise<void> {
    for (const { stop } of this.engines) await stop().catch(() => undefined);
    this.issuer.stop();
    await this.connection.close();
    await this.database.drop();
  }
}

/** `type` or `type:nodeId`, in order: what most tests compare. */
export const shape = (events: readonly RunEvent[] | undefined): string[] =>
  (events ?? []).map(({ type, nodeId }) => (nodeId ? `${type}:${nodeId}` : type));
