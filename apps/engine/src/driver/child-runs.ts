import { Injectable } from '@nestjs/common';
import { type Json, type JsonObject, WopError } from '@isthmus/protocol';
import { v5 } from 'uuid';
import { fold } from '../core/apply.js';
import { Batch } from '../core/batch.js';
import { seed } from '../core/inputs.js';
import { initial } from '../core/state.js';
import type { ChildRun } from '../nodes/node-type.js';
import { NO_FAMILY, RunLog, refsOf, type RunRow } from '../store/run-log.js';
import { Workflows } from '../store/workflows.js';
import type { Runs } from './runs.js';
import type { CallingRun } from './tool-calls.js';
import { Values } from './values.js';

type Child = {
  readonly nodeId: string;
  readonly attempt: number;
  readonly workflowId: string;
  readonly inputs: JsonObject;
  readonly propagate: boolean;
};

/** Starts runs for nodes of other runs, and tells how they stand. Same tenant, same workspace, same principal. */
@Injectable()
export class ChildRuns {
  constructor(
    private readonly log: RunLog,
    private readonly workflows: Workflows,
  ) {}

  /** Entered again, it finds the child: the id is made of the parent's, the node and the attempt. */
  async start(
    runs: Pick<Runs, 'lease' | 'start' | 'instance'>,
    parent: CallingRun,
    { transport, trust, trace, options }: RunRow,
    child: Child,
  ): Promise<ChildRun> {
    const { nodeId, attempt, workflowId } = child;
    const runId = v5(`${nodeId}#${attempt}`, parent.runId);
    const known = await this.find(parent.tenant, runId);
    if (known) return known;
    for (let atLeast = 0; ; ) {
      const workflow = await this.workflows.latest(parent, workflowId, atLeast);
      if (!workflow)
        throw new WopError('unknown_child_workflow', `Node "${nodeId}" names the workflow "${workflowId}", which is not registered here.`);
      const { inputs, problems } = seed(workflow.graph.definition, child.inputs);
      const [problem] = problems;
      if (problem)
        throw new WopError(
          'validation_error',
          `The inputs that node "${nodeId}" gives to "${workflowId}" are not valid: "${problem.path}" ${problem.message}.`,
        );
      await parent.announce({ type: 'node.dispatched', payload: { nodeId, childRunId: runId, childWorkflowId: workflowId } });
      const { at, until, end } = runs.lease();
      const batch = new Batch(workflow.graph, initial(runId));
      const owner = { tenant: parent.tenant, workspace: parent.workspace, principal: parent.principal };
      batch.add({ type: 'start', started: { workflowId, inputs, transport, owner }, at: at.getTime() });
      const [started] = batch.events;
      if (started?.type !== 'run.started') throw new Error('a run starts with run.started');
      const run = {
        ...owner,
        runId,
        workflowId,
        revision: workflow.revision,
        transport,
        trust,
        options: { ...(options.configurable && { configurable: options.configurable }) },
        trace,
        family: { ...NO_FAMILY, parentRun: parent.runId, parentNode: nodeId },
      };
      const created = await this.log.create({ run, started, owner: runs.instance, at, leaseUntil: until, propagate: child.propagate });
      if (created.is === 'stale') {
        if (created.revision === null) throw new WopError('unknown_child_workflow', `The workflow "${workflowId}" is gone.`);
        atLeast = created.revision;
        continue;
      }
      if (created.is === 'created') {
        const row: RunRow = { ...run, status: 'running', head: 0, epoch: 1, startedAt: at, endedAt: null, pause: null };
        runs.start({ run: row, graph: workflow.graph, state: batch.state, epoch: 1, takeovers: 0, leaseEnd: end });
      }
      return { runId, status: 'running', variables: {} };
    }
  }

  private async find(tenant: string, runId: string): Promise<ChildRun | undefined> {
    const page = await this.log.read(tenant, null, runId);
    if (!page) return undefined;
    const state = fold(initial(runId), page.events);
    const values = new Values();
    values.learn(await this.log.values(tenant, runId, refsOf(state)));
    const variables: Record<string, Json> = Object.fromEntries([...state.variables].map(([name, stored]) => [name, values.read(stored)]));
    return { runId, status: state.status, variables, ...(state.error && { error: state.error }) };
  }
}
