import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { currentCarrier, Ids } from '@isthmus/chassis';
import { From, Handle } from '@isthmus/messaging';
import {
  type Caller,
  engine,
  isRunId,
  type JsonObject,
  maskCredentials,
  MESSAGE_BUDGET_BYTES,
  type Output,
  ownerOf,
  type Parsed,
  type RunSnapshot,
  toRunEvent,
  WopError,
} from '@isthmus/protocol';
import { Batch } from '../core/batch.js';
import { fold } from '../core/apply.js';
import { seed } from '../core/inputs.js';
import { outcomeOf, snapshotOf } from '../core/snapshot.js';
import { initial } from '../core/state.js';
import { Commands, mismatch, notFound } from '../driver/commands.js';
import { Runs } from '../driver/runs.js';
import { DRIVER_SETTINGS, type DriverSettings } from '../driver/settings.js';
import { Values } from '../driver/values.js';
import { answererOf } from '../answerer.js';
import type { Graph } from '../core/graph.js';
import type { RunState } from '../core/state.js';
import { maskInputs } from '../masking.js';
import { NO_FAMILY, RunLog, refsOf, type RunRow } from '../store/run-log.js';
import { Tokens } from '../tokens.js';
import { Workflows } from '../store/workflows.js';
import { checkConfigurable } from '../schema-check.js';
import { bytesOf, fittedOutcome, fittedPage, fittedSnapshot } from './budget.js';
import { afterOf, cursorAfter } from './cursor.js';

/** Bytes of payload in one page of events: the message around it stays in its budget. */
const PAGE_BYTES = 256 * 1024;

@Controller()
export class RunsHandler {
  constructor(
    private readonly log: RunLog,
    private readonly workflows: Workflows,
    private readonly runs: Runs,
    private readonly commands: Commands,
    private readonly ids: Ids,
    private readonly tokens: Tokens,
    @Inject(DRIVER_SETTINGS) private readonly settings: DriverSettings,
  ) {}

  @Handle(engine.createRun)
  async create(@From() caller: Caller, @Payload() input: Parsed<typeof engine.createRun>): Promise<Output<typeof engine.createRun>> {
    for (let atLeast = 0; ; ) {
      const workflow = await this.workflows.latest(caller, input.workflowId, atLeast);
      if (!workflow) throw unknownWorkflow(input.workflowId);
      const { graph, revision } = workflow;
      const { inputs, problems } = seed(graph.definition, input.inputs);
      const [problem] = problems;
      if (problem)
        throw new WopError('validation_error', `The inputs are not valid: "${problem.path}" ${problem.message}.`, {
          issues: [...problems],
        });
      checkConfigurable(graph.definition.configurableSchema, input.configurable as JsonObject | undefined);

      const runId = this.ids.run();
      const { at, until, end } = this.runs.lease();
      const { configurable, tags, metadata, transport } = input;
      const batch = new Batch(graph, initial(runId));
      const owner = ownerOf(caller);
      const { shown, refs, values } = maskInputs(inputs, graph.definition.variables);
      batch.add({
        type: 'start',
        started: { workflowId: input.workflowId, inputs: shown, transport, owner, ...(tags && { tags }), ...(metadata && { metadata }) },
        ...(values.length > 0 && { inputRefs: refs }),
        at: at.getTime(),
      });
      const [started] = batch.events;
      if (started?.type !== 'run.started') throw new Error('a run starts with run.started');
      const run = {
        runId,
        ...owner,
        workflowId: input.workflowId,
        revision,
        transport,
        trust: input.trust,
        options: {
          ...(configurable && { configurable: configurable as JsonObject }),
          ...(tags && { tags }),
          ...(metadata && { metadata }),
        },
        trace: currentCarrier(),
        family: NO_FAMILY,
      };
      const created = await this.log.create({
        run,
        started,
        owner: this.settings.instance,
        at,
        leaseUntil: until,
        values,
        ...(input.idempotency && { idempotency: input.idempotency }),
      });
      if (created.is === 'stale') {
        if (created.revision === null) throw unknownWorkflow(input.workflowId);
        atLeast = created.revision;
        continue;
      }
      if (created.is === 'mismatch') throw mismatch();
      if (created.is === 'replayed')
        return {
          runId: created.runId,
          status: 'running',
          replayed: true,
          ...(input.holdMs > 0 && { settled: await this.outcome(caller, created.runId) }),
        };
      const row = { ...run, status: 'running' as const, head: 0, epoch: 1, startedAt: at, endedAt: null, pause: null };
      const drive = this.runs.start({ run: row, graph, state: batch.state, epoch: 1, takeovers: 0, leaseEnd: end });
      const settled = input.holdMs > 0 ? await this.runs.settle(drive, input.holdMs) : undefined;
      // Outputs that do not fit are told, with their size, to whoever reads the run.
      const fits = settled && bytesOf(settled) <= MESSAGE_BUDGET_BYTES;
      return { runId, status: 'running', replayed: false, ...(fits && { settled }) };
    }
  }

  @Handle(engine.readRun)
  async read(
    @From() caller: Caller,
    @Payload() { runId, fromSequence, want }: Parsed<typeof engine.readRun>,
  ): Promise<Output<typeof engine.readRun>> {
    const folds = want.includes('snapshot') || want.includes('outcome');
    const page = await this.log.read(caller.tenant, caller.workspace, runId, folds ? 0 : fromSequence, folds ? undefined : PAGE_BYTES);
    if (!page) throw notFound();
    const { run } = page;
    const events = want.includes('events')
      ? paged(page.events.filter(({ sequence }) => sequence >= fromSequence))
      : { events: undefined, more: false };
    const base = {
      runId,
      workflowId: run.workflowId,
      status: run.status,
      head: run.head,
      more: page.more || events.more,
      ...(events.events && {
        events: events.events.map((event) =>
          toRunEvent(runId, event.sequence, new Date(event.at), { ...event, contentTrust: event.untrusted ? 'untrusted' : null }),
        ),
      }),
    };
    if (!folds) return base;
    const state = fold(initial(runId, run.family.idBase ?? runId), page.events);
    const graph = await this.workflows.graph(run, run.workflowId, run.revision);
    const values = new Values();
    values.learn(await this.log.values(caller.tenant, runId, refsOf(state)));
    const outcome = want.includes('outcome') ? fittedOutcome(outcomeOf(graph, state, values.read)) : undefined;
    const answer = { ...base, ...(outcome && { outcome }) };
    if (!want.includes('snapshot')) return answer;
    return { ...answer, snapshot: fittedSnapshot(await this.snapshot(caller, run, graph, state, values), bytesOf(answer)) };
  }

  /** Tokens are shown to whoever may answer anyway, and for external events to whoever may read: it is for them to pass on. */
  private async snapshot(caller: Caller, run: RunRow, graph: Graph, state: RunState, values: Values): Promise<RunSnapshot> {
    const { tenant, runId, revision, options, family } = run;
    const children = state.children.size > 0 ? await this.log.children(tenant, runId) : [];
    const snapshot = snapshotOf(graph, state, { revision, options, family, children }, values.read);
    if (!snapshot.interrupts) return snapshot;
    const mayAnswer = caller.scopes.includes('approvals:respond');
    const interrupts = await Promise.all(
      snapshot.interrupts.map(async (open) => (mayAnswer || open.kind === 'external-event' ? this.tokens.shown(run, state, open) : open)),
    );
    return { ...snapshot, interrupts, ...(interrupts[0] && { interrupt: interrupts[0] }) };
  }

  @Handle(engine.runHeads)
  async heads(@Payload() { runIds }: Parsed<typeof engine.runHeads>): Promise<Output<typeof engine.runHeads>> {
    return { heads: [...(await this.log.heads(runIds))] };
  }

  @Handle(engine.listRuns)
  async list(
    @From() caller: Caller,
    @Payload() { status, workflowId, tag, cursor, limit }: Parsed<typeof engine.listRuns>,
  ): Promise<Output<typeof engine.listRuns>> {
    const before = cursor === undefined ? undefined : afterOf(cursor, isRunId);
    const rows = await this.log.list(caller.tenant, caller.workspace, {
      limit: limit + 1,
      ...(before && { before }),
      ...(status && { statuses: status }),
      ...(workflowId && { workflowId }),
      ...(tag && { tag }),
    });
    const runs = rows
      .slice(0, limit)
      .map(({ runId, workflowId: id, status: now, tenant, workspace, principal, startedAt, endedAt, options }) => ({
        runId,
        workflowId: id,
        status: now,
        owner: { tenant, workspace, principal },
        startedAt: startedAt.toISOString(),
        ...(endedAt && { completedAt: endedAt.toISOString() }),
        ...(options.tags && { tags: [...options.tags] }),
      }));
    const page = fittedPage(runs);
    const last = page.at(-1);
    return { runs: [...page], ...(rows.length > page.length && last && { nextCursor: cursorAfter(last.runId) }) };
  }

  @Handle(engine.cancelRun)
  async cancel(
    @From() caller: Caller,
    @Payload() { runId, reason, idempotency }: Parsed<typeof engine.cancelRun>,
  ): Promise<Output<typeof engine.cancelRun>> {
    const { response, replayed } = await this.commands.put(
      caller,
      runId,
      () => ({ type: 'cancel', by: caller.principal, ...(reason !== undefined && { reason }) }),
      ({ status }, changed) => ({ runId, status, ...(!changed && { alreadyTerminal: true }) }),
      idempotency,
    );
    return { ...response, replayed };
  }

  @Handle(engine.resolveInterrupt)
  async resolve(
    @From() caller: Caller,
    @Payload() { runId, at, resumeValue, idempotency }: Parsed<typeof engine.resolveInterrupt>,
  ): Promise<Output<typeof engine.resolveInterrupt>> {
    const { response, replayed } = await this.commands.put(
      caller,
      runId,
      () => ({ type: 'resolve', target: at, resumeValue, by: answererOf(caller) }),
      ({ status, interrupts }) => ({ runId, nodeId: 'nodeId' in at ? at.nodeId : (interrupts.get(at.interruptId)?.nodeId ?? ''), status }),
      idempotency,
    );
    return { ...response, replayed };
  }

  private async outcome(caller: Caller, runId: string): Promise<Output<typeof engine.readRun>['outcome']> {
    return (await this.read(caller, { runId, fromSequence: 0, want: ['outcome'], waitMs: 0 })).outcome;
  }
}

const unknownWorkflow = (workflowId: string): WopError =>
  new WopError(
    'validation_error',
    maskCredentials(
      `There is no workflow "${workflowId}" in this workspace. Register it with PUT /v1/host/isthmus/workflows/${workflowId}.`,
    ),
    { path: 'workflowId' },
  );

/** A page within the budget, of events that were read for another purpose as well. */
function paged<E extends { readonly payload: unknown }>(events: readonly E[]): { events: readonly E[]; more: boolean } {
  let bytes = 0;
  const fits = events.findIndex((event, index) => {
    bytes += Buffer.byteLength(JSON.stringify(event.payload)) + 200;
    return bytes > PAGE_BYTES && index > 0;
  });
  return fits < 0 ? { events, more: false } : { events: events.slice(0, fits), more: true };
}
