import { randomUUID } from 'node:crypto';
import { answer, type Asked } from '@isthmus/testing';
import {
  authz,
  BELLS,
  type Caller,
  type Contract,
  engine,
  type Exposure,
  type Input,
  interruptId,
  type Json,
  type JsonObject,
  type OpenInterrupt,
  type Output,
  type Parsed,
  type RunOutcome,
  type Scope,
  WopError,
} from '@isthmus/protocol';
import type { NatsConnection } from '@nats-io/transport-node';
import { decodeJwt } from 'jose';

/** What a workflow of the test does: each step is an end, or questions whose answers lead to the next step. */
export type Step = (
  inputs: JsonObject,
  answers: JsonObject,
) => RunOutcome | { is: 'ask'; interrupts: Omit<OpenInterrupt, 'interruptId'>[] };

export type TestRun = {
  readonly runId: string;
  readonly workflowId: string;
  readonly caller: Caller;
  readonly inputs: JsonObject;
  readonly created: Input<typeof engine.createRun>;
  readonly traceparent: string | undefined;
  readonly resolved: { readonly interruptId: string; readonly resumeValue: Json; readonly by: string }[];
  readonly cancelled: { readonly reason: string | undefined; readonly by: string }[];
  outcome: RunOutcome;
  answers: JsonObject;
  asked: number;
};

/**
 * An engine as its contracts describe it, small enough to be a test's: runs are scripts, an interrupt takes one answer, a key
 * finds its run again, and every change rings the bell.
 */
export class TestEngine {
  readonly runs = new Map<string, TestRun>();
  readonly audit: JsonObject[] = [];
  lists = 0;
  private readonly exposures = new Map<string, Exposure[]>();
  private readonly versions = new Map<string, number>();
  private readonly workflows = new Map<string, Step>();
  private readonly keys = new Map<string, { runId: string; digest: string }>();
  private stops: (() => void)[] = [];

  constructor(
    private readonly connection: NatsConnection,
    private readonly passportOf: (caller: Caller) => Promise<string>,
  ) {}

  async start(): Promise<this> {
    this.handle(engine.listExposures, [], ({ mount, knownVersion }, caller) => {
      this.lists++;
      const key = `${caller.tenant} ${mount}`;
      const version = String(this.versions.get(key) ?? 0);
      return { version, ...(version !== knownVersion && { exposures: this.exposures.get(key) ?? [] }) };
    });
    this.handle(engine.createRun, ['runs:create'], (input, caller, asked) => this.create(input, caller, asked));
    this.handle(engine.readRun, ['runs:read'], ({ runId }, caller) => {
      const run = this.run(runId, caller);
      return { runId, workflowId: run.workflowId, status: statusOf(run.outcome), head: 0, more: false, outcome: run.outcome };
    });
    this.handle(engine.resolveInterrupt, ['approvals:respond'], (input, caller) => this.resolve(input, caller));
    this.handle(engine.cancelRun, ['runs:cancel'], ({ runId, reason }, caller) => {
      const run = this.run(runId, caller);
      run.cancelled.push({ reason, by: caller.principal });
      if (!isOver(run.outcome)) this.move(run, { is: 'cancelled', ...(reason && { reason }) });
      return { runId, status: statusOf(run.outcome), replayed: false };
    });
    this.stops.push(
      answer(this.connection, authz.recordAudit, ({ entries }) => {
        this.audit.push(...(entries as unknown as JsonObject[]));
        return { recorded: entries.length };
      }),
      answer(this.connection, authz.delegate, async (input) => {
        const { tenant, workspace } = input;
        const caller: Caller =
          input.for === 'service'
            ? { tenant, workspace, principal: `service:${input.service}`, kind: 'service', scopes: input.scopes, epoch: 0 }
            : {
                tenant,
                workspace,
                principal: input.principal,
                kind: 'principal',
                scopes: ['runs:create', 'runs:read', 'approvals:respond'],
                epoch: 0,
              };
        return { token: await this.passportOf(caller), caller, expiresInMs: 60_000 };
      }),
    );
    await this.connection.flush();
    return this;
  }

  /** Nothing registered, nothing run. Versions go on: no replica may take a new catalog for one it knows. */
  reset(): void {
    for (const key of this.exposures.keys()) this.versions.set(key, (this.versions.get(key) ?? 0) + 1);
    for (const kept of [this.exposures, this.workflows, this.keys, this.runs]) kept.clear();
    this.audit.length = 0;
    this.lists = 0;
  }

  /** A workflow that is exposed as a tool of the tenant's mount. */
  expose(name: string, step: Step, manifest: JsonObject = {}, { tenant = 'tenant-a', mount = 'default' } = {}): void {
    const key = `${tenant} ${mount}`;
    const others = (this.exposures.get(key) ?? []).filter((exposure) => exposure.name !== name);
    this.exposures.set(key, [
      ...others,
      { kind: 'tool', name, workflowId: `wf-${name}`, nodeId: 'expose', manifest: { name, ...manifest } },
    ]);
    this.versions.set(key, (this.versions.get(key) ?? 0) + 1);
    this.workflows.set(`wf-${name}`, step);
  }

  move(run: TestRun, outcome: RunOutcome): void {
    run.outcome = outcome;
    this.connection.publish(BELLS.run.subject(run.runId));
  }

  stop(): void {
    for (const stop of this.stops) stop();
    this.stops = [];
  }

  private create(input: Parsed<typeof engine.createRun>, caller: Caller, asked: Asked): Output<typeof engine.createRun> {
    const { idempotency } = input;
    const key = idempotency && `${caller.tenant} ${idempotency.endpoint} ${idempotency.keyHash}`;
    const earlier = key === undefined ? undefined : this.keys.get(key);
    if (earlier && earlier.digest !== idempotency?.digest)
      throw new WopError('idempotency_key_mismatch', 'The key was used with another request.');
    const run = earlier ? this.run(earlier.runId, caller) : this.make(input, caller, asked);
    if (key !== undefined && idempotency) this.keys.set(key, { runId: run.runId, digest: idempotency.digest });
    const settled = input.holdMs > 0 && run.outcome.is !== 'working' ? { settled: run.outcome } : {};
    return { runId: run.runId, status: 'running', replayed: earlier !== undefined, ...settled };
  }

  private make(input: Parsed<typeof engine.createRun>, caller: Caller, asked: Asked): TestRun {
    const runId = randomUUID();
    const run: TestRun = {
      runId,
      workflowId: input.workflowId,
      caller,
      inputs: input.inputs,
      created: input,
      traceparent: asked.header('traceparent'),
      resolved: [],
      cancelled: [],
      outcome: { is: 'working', status: 'running' },
      answers: {},
      asked: 0,
    };
    this.runs.set(runId, run);
    this.drive(run);
    return run;
  }

  private drive(run: TestRun): void {
    const next = (this.workflows.get(run.workflowId) as Step)(run.inputs, run.answers);
    if (next.is !== 'ask') {
      this.move(run, next);
      return;
    }
    const interrupts = next.interrupts.map((interrupt) => ({ ...interrupt, interruptId: interruptId(run.runId, run.asked++) }));
    this.move(run, { is: 'waiting', status: 'waiting-input', interrupts });
  }

  private resolve(
    { runId, at, resumeValue }: Parsed<typeof engine.resolveInterrupt>,
    caller: Caller,
  ): Output<typeof engine.resolveInterrupt> {
    const run = this.run(runId, caller);
    const id = 'interruptId' in at ? at.interruptId : '';
    const open = run.outcome.is === 'waiting' ? run.outcome.interrupts : [];
    const interrupt = open.find((one) => one.interruptId === id);
    if (!interrupt) throw new WopError('interrupt_already_resolved', 'Someone answered first.');
    run.resolved.push({ interruptId: id, resumeValue, by: caller.principal });
    run.answers = { ...run.answers, [interrupt.key]: resumeValue };
    const rest = open.filter((one) => one !== interrupt);
    if (rest.length > 0) this.move(run, { is: 'waiting', status: 'waiting-input', interrupts: rest });
    else this.drive(run);
    return { runId, nodeId: interrupt.nodeId, status: statusOf(run.outcome), replayed: false };
  }

  private run(runId: string, caller: Caller): TestRun {
    const run = this.runs.get(runId);
    if (run?.caller.tenant !== caller.tenant) throw new WopError('not_found', 'There is no such run.');
    return run;
  }

  private handle<C extends Contract>(
    contract: C,
    scopes: readonly Scope[],
    work: (input: Parsed<C>, caller: Caller, asked: Asked) => Output<C>,
  ): void {
    const stop = answer(this.connection, contract, (input, asked) => {
      const caller = decodeJwt(asked.passport ?? '')['caller'] as Caller;
      if (!scopes.every((scope) => caller.scopes.includes(scope)))
        throw new WopError('forbidden', 'A scope is missing.', { scopeRequired: scopes[0] ?? '' });
      return work(input, caller, asked);
    });
    this.stops.push(stop);
  }
}

const isOver = ({ is }: RunOutcome): boolean => is !== 'working' && is !== 'waiting';
const statusOf = (outcome: RunOutcome) => ('status' in outcome ? outcome.status : outcome.is);

export const done = (outputs: JsonObject): RunOutcome => ({ is: 'completed', outputs, contentTrust: 'untrusted' });
export const approval = (nodeId: string, data: JsonObject = {}): Omit<OpenInterrupt, 'interruptId'> => ({
  nodeId,
  kind: 'approval',
  key: nodeId,
  payload: { artifactId: nodeId, artifactType: 'node.inputs', title: 'May I?', actions: ['accept', 'reject'], ...data },
});
export const clarification = (nodeId: string, questions: JsonObject[], metadata?: JsonObject): Omit<OpenInterrupt, 'interruptId'> => ({
  nodeId,
  kind: 'clarification',
  key: nodeId,
  payload: { questions },
  ...(metadata && { metadata }),
});
