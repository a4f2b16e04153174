import { Injectable } from '@nestjs/common';
import { wasCancelled } from '@isthmus/messaging';
import { isWopError, type Json, type JsonObject, type OpenInterrupt, type RunOutcome } from '@isthmus/protocol';
import type { Call, Method } from '../call.js';
import type { ExposedTool } from '../catalog.js';
import { canShowForms, formOf, resolutionOf } from '../elicitation.js';
import { idempotencyOf } from '../idempotency.js';
import { isObject } from '../read-message.js';
import type { Continuation, StateRequest } from '../request-state.js';
import { RequestStates } from '../request-states.js';
import { type Answer, CODES, complete, inputRequired, invalidParams, RpcError } from '../rpc.js';
import { errorResult, runAsTool } from '../run-as-tool.js';
import { Runs } from '../runs.js';
import { schemaProblem } from '@isthmus/schemas';

type Params = { readonly name: string; readonly arguments: JsonObject; readonly responses: JsonObject };
/** A run and what its call has to do with it. `keyed`: it goes on without its client. */
type Owned = { readonly runId: string; readonly keyed: boolean };
type Asked = { readonly call: Call; readonly tool: ExposedTool; readonly request: StateRequest; readonly responses: JsonObject };

/**
 * A tool call is a run of the workflow behind the tool. The run's state is the answer: an end is a result, a question is
 * `input_required`, whose repetition with answers goes on with the same run on any replica. (architecture §7 b)
 */
@Injectable()
export class ToolsCall implements Method {
  readonly name = 'tools/call';

  constructor(
    private readonly runs: Runs,
    private readonly states: RequestStates,
  ) {}

  async answer(call: Call): Promise<Answer> {
    const { name, arguments: given, responses } = paramsOf(call.params);
    const { caller, mount } = call;
    const tool = (await call.catalog()).tool(name);
    // The same words for a tool that is not there and one that is not for this caller.
    if (!tool) throw invalidParams('There is no tool of that name.');
    const asked: Asked = { call, tool, responses, request: { caller, mount, method: this.name, name, arguments: given } };
    return Object.hasOwn(call.params, 'requestState') ? this.goOn(asked, call.params['requestState'] as Json) : this.start(asked);
  }

  private async start(asked: Asked): Promise<Answer> {
    const { call, tool, request } = asked;
    refuseArguments(tool, request.arguments);
    const idempotency = idempotencyOf(call, tool.name, request.arguments);
    const { runId, outcome } = await this.runs.start(call, {
      workflowId: tool.workflowId,
      inputs: request.arguments,
      ...(idempotency && { idempotency }),
    });
    const owned = { runId, keyed: idempotency !== undefined };
    return this.owning(call, owned, async () =>
      this.project(asked, owned, outcome && outcome.is !== 'working' ? outcome : await this.runs.settle(call, runId)),
    );
  }

  private async goOn(asked: Asked, state: Json): Promise<Answer> {
    const { call, request } = asked;
    const continuation = await this.states.open(request, state);
    return this.owning(call, continuation, async () => {
      const isCancelled = continuation.kind === 'answer' && (await this.answerInterrupts(asked, continuation));
      if (isCancelled) await this.runs.cancel(call, continuation.runId, 'mcp-elicitation-cancelled');
      return this.project(asked, continuation, await this.runs.settle(call, continuation.runId));
    });
  }

  /**
   * Hands the answers to the run. All of them are looked at before the first is given, so that a malformed one consumes
   * nothing; the engine takes one answer per interrupt, which makes the state single use.
   * @returns whether the client gave the call up
   */
  private async answerInterrupts({ call, responses }: Asked, { runId, interruptIds }: Continuation): Promise<boolean> {
    const answered = interruptIds.filter((id) => Object.hasOwn(responses, id));
    if (answered.length === 0) return false;
    const outcome = await this.runs.outcome(call, runId);
    const open = new Map(outcome.is === 'waiting' ? outcome.interrupts.map((interrupt) => [interrupt.interruptId, interrupt]) : []);
    const resolutions = answered.map((id) => {
      const interrupt = open.get(id);
      if (!interrupt) throw used();
      const resolution = resolutionOf(interrupt, responses[id] as Json);
      if (resolution.is === 'malformed')
        throw invalidParams(`The response to ${id} is malformed: ${resolution.because}.`, { interruptId: id });
      return { id, resolution };
    });
    if (resolutions.some(({ resolution }) => resolution.is === 'cancel')) return true;
    for (const { id, resolution } of resolutions) {
      if (resolution.is === 'resume') await this.runs.resolve(call, runId, id, resolution.resumeValue).catch(refuseUsed);
    }
    return false;
  }

  private async project(asked: Asked, owned: Owned, outcome: RunOutcome): Promise<JsonObject> {
    if (outcome.is === 'waiting') return this.ask(asked, owned, outcome.interrupts);
    if (outcome.is !== 'working') return complete(runAsTool(owned.runId, outcome, asked.tool.outputSchema));
    const requestState = await this.states.seal(asked.request, { ...owned, kind: 'wait', interruptIds: [] });
    return inputRequired({ requestState });
  }

  private async ask({ call, request }: Asked, owned: Owned, interrupts: readonly OpenInterrupt[]): Promise<JsonObject> {
    const forms = interrupts.map((interrupt) => ({ interrupt, form: formOf(interrupt) }));
    const shown = forms.flatMap(({ interrupt, form }) => (form.is === 'form' ? [[interrupt.interruptId, form.request] as const] : []));
    if (shown.length === 0) {
      const because = forms.flatMap(({ form }) => (form.is === 'unrepresentable' ? [form.because] : [])).at(0);
      return complete({
        ...errorResult(`elicitation_unsupported: The run waits for an answer that MCP cannot carry here: ${because}.`),
        _meta: { 'dev.isthmus/runId': owned.runId },
      });
    }
    if (!canShowForms(call.capabilities)) {
      // The request ends in an error and nobody is left to bring an answer: the run must not wait for it.
      if (!owned.keyed) await this.runs.abandon(call, owned.runId, 'mcp-client-cannot-answer');
      throw new RpcError(CODES.missingClientCapability, 'The tool asks a question and the client did not declare that it can show one.', {
        requiredCapabilities: { elicitation: { form: {} } },
      });
    }
    const requestState = await this.states.seal(request, { ...owned, kind: 'answer', interruptIds: shown.map(([id]) => id) });
    return inputRequired({ inputRequests: Object.fromEntries(shown), requestState });
  }

  /**
   * Until its answer is sent a run belongs to its request: a client that goes away cancels it, unless it named a key by which
   * it will come back. A replica or gateway that dies is not a client that went away. (rulings "MCP mount")
   */
  private async owning(call: Call, { runId, keyed }: Owned, work: () => Promise<Answer>): Promise<Answer> {
    try {
      return await work();
    } finally {
      if (!keyed && wasCancelled(call.signal)) await this.runs.abandon(call, runId, 'mcp-request-cancelled');
    }
  }
}

function paramsOf({ name, arguments: given = {}, inputResponses = {} }: JsonObject): Params {
  if (typeof name !== 'string') throw invalidParams('The name of the tool is missing.');
  if (!isObject(given)) throw invalidParams('The arguments of a tool are an object.');
  if (!isObject(inputResponses)) throw invalidParams('The inputResponses are an object.');
  return { name, arguments: given, responses: inputResponses };
}

/** Before any run exists. Says where and what, and repeats no value. (spec/authz.md §7.2) */
function refuseArguments({ inputSchema }: ExposedTool, given: JsonObject): void {
  const problem = schemaProblem(inputSchema, given);
  if (problem === 'unusable')
    throw new RpcError(CODES.internalError, 'The input schema of the tool cannot be used.', { reason: 'tool_schema_unusable' });
  if (problem)
    throw invalidParams(`The arguments do not fit the tool: ${problem.path ? `"${problem.path}"` : 'the object'} ${problem.message}.`, {
      issues: [problem],
    });
}

const used = (): RpcError =>
  invalidParams('The requestState was used before, or the question was answered by somebody else.', { reason: 'request_state_used' });

const USED: readonly string[] = ['interrupt_already_resolved', 'interrupt_not_found', 'interrupt_cancelled', 'run_terminal'];
function refuseUsed(error: unknown): never {
  throw isWopError(error) && USED.includes(error.code) ? used() : error;
}
