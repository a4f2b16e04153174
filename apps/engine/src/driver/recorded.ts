import type { LoggedEvent, NewEvent, RunState, Stored } from '../core/state.js';
import type { Outcome } from '../core/decision.js';
import { inline } from '../core/state.js';

/** What a source run recorded, for a replay of it: outcomes of its effects and the answers people gave. (replay.md §4.2) */
export class Recorded {
  constructor(private readonly events: readonly LoggedEvent[]) {}

  /**
   * The outcome of a node's nth attempt with the facts that went with it, or undefined when none was recorded: then a replay
   * fails closed, for it calls nobody. The refs of its values are the source's own, copied with the fork.
   */
  outcome(
    nodeId: string,
    attempt: number,
  ): { readonly outcome: Exclude<Outcome, { is: 'suspended' }>; readonly edges: Readonly<Record<string, boolean>> } | undefined {
    const mine = this.events.filter((event) => 'nodeId' in event.payload && event.payload.nodeId === nodeId);
    const ends = mine.filter(({ type }) => type === 'node.completed' || type === 'node.failed' || type === 'node.retried');
    const end = ends[attempt];
    if (!end) return undefined;
    const begin = mine.filter(({ type }) => type === 'node.started')[attempt];
    const before = mine
      .filter(({ sequence, type }) => sequence > (begin?.sequence ?? -1) && sequence < end.sequence && SIDE_EVENTS.has(type))
      .map((event) => asNew(event));
    const edges = end.facts?.edges ?? {};
    if (end.type === 'node.completed') {
      const { value } = end.facts ?? {};
      const outputs: Stored = value ? { is: 'ref', ...value } : inline(end.payload.outputs ?? {});
      return { outcome: { is: 'completed', outputs, before }, edges };
    }
    const error = end.type === 'node.retried' ? end.payload.lastError : end.type === 'node.failed' ? end.payload.error : undefined;
    return error && { outcome: { is: 'failed', error, before }, edges };
  }

  /** The facts of an answer: votes, resolution, resumption; those that came before what the replay knows already are left out. */
  answers(state: RunState): readonly NewEvent[] {
    const open = [...state.interrupts.values()].filter(({ status }) => status === 'open');
    return open.flatMap(({ id, nodeId }) => {
      const resolved = this.events.find((event) => event.type === 'interrupt.resolved' && event.payload.interruptId === id);
      if (!resolved) return [];
      const requested = this.events.find((event) => event.type === 'interrupt.requested' && event.payload.interruptId === id);
      const between = this.events.filter(
        (event) =>
          event.sequence > (requested?.sequence ?? -1) &&
          (event.sequence < resolved.sequence || isResumption(event, resolved)) &&
          ANSWERS.has(event.type) &&
          (('nodeId' in event.payload && event.payload.nodeId === nodeId) ||
            ('gateId' in event.payload && event.payload.gateId === nodeId)),
      );
      return [
        ...between.filter(({ sequence }) => sequence < resolved.sequence),
        resolved,
        ...between.filter(({ sequence }) => sequence > resolved.sequence),
      ].map(asNew);
    });
  }
}

const SIDE_EVENTS: ReadonlySet<string> = new Set([
  'agent.toolCalled',
  'agent.toolReturned',
  'node.dispatched',
  'variable.changed',
  'channel.written',
]);
const ANSWERS: ReadonlySet<string> = new Set([
  'approval.received',
  'approval.granted',
  'approval.rejected',
  'approval.overridden',
  'clarification.resolved',
  'node.resumed',
]);

const isResumption = (event: LoggedEvent, resolved: LoggedEvent): boolean =>
  event.type === 'node.resumed' && resolved.type === 'interrupt.resolved' && event.payload.interruptId === resolved.payload.interruptId;

function asNew({ sequence: _, at: __, ...event }: LoggedEvent): NewEvent {
  return event as NewEvent;
}
