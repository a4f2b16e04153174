import { TERMINAL_EVENTS, TRIGGER_RULES, WorkflowDefinition } from '@isthmus/protocol';
import fc from 'fast-check';
import { apply, fold } from './apply.js';
import { type Command, decide, logged, type Wish } from './decide.js';
import { AT, answers, asksApproval, asksQuestions, broke, done, RUN } from './given.suite.js';
import { compile, type Graph } from './graph.js';
import { type Effect, pending } from './pending.js';
import { initial, type LoggedEvent, openInterrupts, type RunState } from './state.js';

/** What a node does when it is executed. */
const DOES = ['completes', 'fails', 'sets', 'asks approval', 'asks questions'] as const;
type Does = (typeof DOES)[number];
export type Plan = { readonly graph: Graph; readonly does: ReadonlyMap<string, Does>; readonly verdicts: ReadonlyMap<string, boolean> };

/** Random acyclic graphs of 1 to 8 nodes with any rules, conditions and disabled nodes; `tame`: no failure, no condition. */
export function plans({ tame = false } = {}): fc.Arbitrary<Plan> {
  const node = fc.record({
    does: fc.constantFrom(...(tame ? DOES.filter((one) => one !== 'fails') : DOES)),
    disabled: tame ? fc.constant(false) : fc.integer({ min: 0, max: 9 }).map((dice) => dice === 0),
  });
  const edge = fc.record({
    from: fc.nat(7),
    to: fc.nat(7),
    triggerRule: fc.option(fc.constantFrom(...TRIGGER_RULES), { nil: undefined }),
    verdict: tame ? fc.constant(undefined) : fc.option(fc.boolean(), { nil: undefined }),
  });
  return fc
    .tuple(fc.array(node, { minLength: 1, maxLength: 8 }), fc.array(edge, { maxLength: 14 }), fc.boolean())
    .map(([nodes, wishes, backwards]) => {
      const inOrder = <T>(list: readonly T[]): readonly T[] => (backwards ? list.toReversed() : list);
      const edges = wishes.filter(({ from, to }) => from < to && to < nodes.length).map((wish, index) => ({ ...wish, id: `e${index}` }));
      const definition = WorkflowDefinition.parse({
        id: 'w',
        name: 'w',
        nodes: inOrder(nodes.map(({ disabled }, index) => ({ id: `n${index}`, typeId: 'core.noop', disabled }))),
        edges: edges.map(({ id, from, to, triggerRule, verdict }) => ({
          id,
          sourceNodeId: `n${from}`,
          targetNodeId: `n${to}`,
          ...(triggerRule && { triggerRule }),
          ...(verdict !== undefined && { condition: { left: 'status', right: 'completed' } }),
        })),
      });
      return {
        graph: compile(definition),
        does: new Map(nodes.map(({ does }, index) => [`n${index}`, does])),
        verdicts: new Map(edges.flatMap(({ id, verdict }) => (verdict === undefined ? [] : [[id, verdict] as const]))),
      };
    });
}

/** What happens to a run, step by step: pairs of what and to whom. */
export const scripts = fc.array(fc.tuple(fc.nat(99), fc.nat(99)), { maxLength: 40 });
export type Script = readonly (readonly [number, number])[];

/** A run whose driver crashes, reports twice and late, and meets people; it checks what must hold at every step. */
export class World {
  readonly log: LoggedEvent[] = [];
  /** As the driver that never crashed has it in memory. */
  state: RunState = initial(RUN);
  private readonly sent: Wish[] = [];
  private at = AT;

  constructor(private readonly plan: Plan) {
    this.put({ type: 'start', started: { workflowId: 'w', inputs: {}, transport: 'rest', owner: { tenant: 't' } } });
    this.put({ type: 'proceed' });
  }

  put(wish: Wish): void {
    const { graph } = this.plan;
    this.at += 1;
    const command: Command = { ...wish, at: this.at };
    const decision = decide(graph, this.state, command);
    same(decision, decide(graph, fold(initial(RUN), this.log), command), 'deciding is a function of the log');
    this.sent.push(wish);
    if (decision.is === 'rejected') return;
    for (const event of decision.events) {
      const entry = logged(event, this.log.length, command.at);
      this.log.push(entry);
      this.state = apply(this.state, entry);
    }
  }

  /** The driver dies: another one has nothing but the log. */
  crash(): void {
    const recovered = fold(initial(RUN), structuredClone(this.log));
    same(recovered, this.state, 'the fold of the log is the state in memory');
    same(pending(this.plan.graph, recovered), this.owed(), 'what is owed after a crash is what was owed');
    same(
      pending(this.plan.graph, recovered).filter(({ is }) => is === 'reenter'),
      this.begunWithoutOutcome(),
      'what began has to be entered again',
    );
    this.state = recovered;
  }

  owed(): readonly Effect[] {
    return pending(this.plan.graph, this.state);
  }

  execute({ nodeId, is }: Effect, reports = true): void {
    if (is === 'begin') this.put({ type: 'begin', nodeId, maxExecutions: 1_000 });
    if (reports) this.put(this.outcomeOf(nodeId));
  }

  /** What happens next, out of two dice. `calm`: nobody cancels. */
  step([what, whom]: readonly [number, number], calm: boolean): void {
    const pick = <T>(list: readonly T[]): T | undefined => list[whom % Math.max(1, list.length)];
    const effect = pick(this.owed());
    const nodeId = pick([...this.plan.graph.nodes.keys()]) ?? '';
    if (what < 45 && effect) this.execute(effect);
    else if (what < 55 && effect) this.execute(effect, false);
    else if (what < 65) this.crash();
    else if (what < 75) this.put(pick(this.sent) ?? { type: 'proceed' });
    else if (what < 80) this.put(this.outcomeOf(nodeId));
    else if (what < 95) this.answer(pick(openInterrupts(this.state))?.nodeId ?? nodeId, ['accept', 'reject', 'ask'][whom % 3] ?? '');
    else if (what < 97 && !calm) this.put({ type: 'cancel', by: 'p' });
    else if (what < 98 && !calm) this.put({ type: 'expire', limitMs: 1, observedMs: 2 });
  }

  answer(nodeId: string, action: string): void {
    this.put(answers(nodeId, action === 'accept' ? { action, answers: { q: 1 } } : { action }));
  }

  /** Goes on until nothing is owed and nothing is asked. */
  finish(): void {
    for (let round = 0; round < 100; round += 1) {
      const [effect] = this.owed();
      const [asked] = openInterrupts(this.state);
      if (effect) this.execute(effect);
      else if (asked && !this.log.some(({ type }) => TERMINAL_EVENTS.has(type))) this.answer(asked.nodeId, 'accept');
      else return;
    }
    throw new Error('the run never came to rest');
  }

  private outcomeOf(nodeId: string): Wish {
    const edges = Object.fromEntries(
      (this.plan.graph.outgoing.get(nodeId) ?? []).flatMap(({ id }) => {
        const verdict = this.plan.verdicts.get(id);
        return verdict === undefined ? [] : [[id, verdict]];
      }),
    );
    const does = this.plan.does.get(nodeId);
    if (does === 'fails') return broke(nodeId, edges);
    const asked = [...this.state.interrupts.values()].find((interrupt) => interrupt.nodeId === nodeId);
    if (does === 'asks approval' && !asked) return asksApproval(nodeId, { actions: ['accept', 'reject', 'ask'] });
    if (does === 'asks questions' && !asked) return asksQuestions(nodeId, 'q');
    const report = done(nodeId, { from: nodeId }, edges);
    return does === 'sets' && report.type === 'report' && report.outcome.is === 'completed'
      ? { ...report, outcome: { ...report.outcome, sets: [{ name: 'last', next: { is: 'inline', value: nodeId } }] } }
      : report;
  }

  /** Told from the log by hand, without folding. */
  private begunWithoutOutcome(): readonly Effect[] {
    if (this.log.some(({ type }) => TERMINAL_EVENTS.has(type))) return [];
    const running = new Set<string>();
    for (const { type, payload } of this.log) {
      if (type === 'node.started' || type === 'node.resumed') running.add(payload.nodeId);
      if (type === 'node.completed' || type === 'node.failed' || type === 'node.suspended') running.delete(payload.nodeId);
    }
    return [...this.plan.graph.nodes.keys()].filter((nodeId) => running.has(nodeId)).map((nodeId) => ({ nodeId, is: 'reenter' }));
  }
}

const plain = (_key: string, value: unknown): unknown =>
  value instanceof Map
    ? [...value]
    : value instanceof Set
      ? [...value]
      : value instanceof Error
        ? `${value.name}: ${value.message}`
        : value;

function same(left: unknown, right: unknown, promise: string): void {
  const [a, b] = [left, right].map((value) => JSON.stringify(value, plain));
  if (a !== b) throw new Error(`${promise}, but\n  ${a}\n  ${b}`);
}
