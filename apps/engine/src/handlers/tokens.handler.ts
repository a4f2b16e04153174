import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { Handle } from '@isthmus/messaging';
import { engine, type Output, type Parsed, WopError } from '@isthmus/protocol';
import { fold } from '../core/apply.js';
import { find } from '../core/resolution.js';
import { snapshotOf } from '../core/snapshot.js';
import { initial } from '../core/state.js';
import { Commands } from '../driver/commands.js';
import { Values } from '../driver/values.js';
import { refsOf, RunLog } from '../store/run-log.js';
import { Workflows } from '../store/workflows.js';
import { Tokens } from '../tokens.js';

/** Answers that come with a signed token instead of a credential. */
@Controller()
export class TokensHandler {
  constructor(
    private readonly log: RunLog,
    private readonly workflows: Workflows,
    private readonly commands: Commands,
    private readonly tokens: Tokens,
  ) {}

  @Handle(engine.inspectToken)
  async inspect(@Payload() { token }: Parsed<typeof engine.inspectToken>): Promise<Output<typeof engine.inspectToken>> {
    const { tenant, workspace, runId, interruptId } = await this.tokens.read(token);
    const page = await this.log.read(tenant, workspace, runId);
    if (!page) throw new WopError('interrupt_not_found', 'Nothing waits for an answer there.');
    const { run } = page;
    const state = fold(initial(runId, run.family.idBase ?? runId), page.events);
    const found = find(state, { interruptId });
    if (found instanceof WopError) throw asGone(found);
    const values = new Values();
    values.learn(await this.log.values(tenant, runId, refsOf(state)));
    const graph = await this.workflows.graph(run, run.workflowId, run.revision);
    const { interrupts = [] } = snapshotOf(graph, state, run, values.read);
    const interrupt = interrupts.find((open) => open.interruptId === interruptId);
    if (!interrupt) throw new WopError('interrupt_not_found', 'Nothing waits for an answer there.');
    return { runId, interrupt };
  }

  @Handle(engine.resolveToken)
  async resolve(
    @Payload() { token, resumeValue, idempotency }: Parsed<typeof engine.resolveToken>,
  ): Promise<Output<typeof engine.resolveToken>> {
    const claims = await this.tokens.read(token);
    if (claims.intent !== 'resolve') throw new WopError('forbidden', 'This token is for looking only.');
    const { runId, nodeId, interruptId } = claims;
    try {
      const { response, replayed } = await this.commands.put(
        claims,
        runId,
        () => ({ type: 'resolve', target: { interruptId }, resumeValue, by: { principal: `token:${interruptId}`, byToken: true } }),
        ({ status }) => ({ runId, nodeId, status }),
        idempotency,
      );
      return { ...response, replayed };
    } catch (error) {
      throw error instanceof WopError ? asGone(error) : error;
    }
  }
}

/** A token of a cancelled run is dead rather than wrong. (execution §3.3, token column) */
const asGone = (error: WopError): WopError =>
  error.code === 'interrupt_cancelled' ? new WopError('interrupt_gone', error.message) : error;
