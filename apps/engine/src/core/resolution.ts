import {
  type ApprovalData,
  ApprovalResume,
  type ClarificationData,
  ClarificationResume,
  type ExternalEventData,
  isTerminal,
  type Json,
  type JsonObject,
  validationError,
  WopError,
} from '@isthmus/protocol';
import { tally } from './approval.js';
import { same } from './conditions.js';
import { type Answerer, type CommandOf, type Decision, events, NOTHING, rejected, type Target } from './decision.js';
import { type Interrupt, type NewEvent, openInterrupts, type RunState } from './state.js';

/** Who stands in the log for an answer: the principal, or the token that was used. (rulings, Interrupts) */
const nameOf = (by: Answerer, interrupt: Interrupt): string => (by.byToken ? `token:${interrupt.id}` : by.principal);

/** The open interrupt that is meant, or why there is none. First answer wins; the codes of settled ones are execution §3.3's. */
export function find(state: RunState, target: Target): Interrupt | WopError {
  const all = [...state.interrupts.values()].filter((one) =>
    'nodeId' in target ? one.nodeId === target.nodeId : one.id === target.interruptId,
  );
  const open = all.find(({ status }) => status === 'open');
  if (all.length === 0) return new WopError('interrupt_not_found', 'Nothing waits for an answer there.');
  if (state.status === 'cancelled') {
    return state.reason === PARENT_CANCELLED
      ? new WopError('interrupt_gone', 'The run that waited was ended by its parent.')
      : new WopError('interrupt_cancelled', 'The run was cancelled while it waited.');
  }
  if (isTerminal(state.status)) return new WopError('interrupt_already_resolved', 'The run has ended.', { runStatus: state.status });
  return open ?? new WopError('interrupt_already_resolved', 'Someone has answered already.');
}
export const PARENT_CANCELLED = 'parent-cancelled';

export function resolve(state: RunState, { target, resumeValue, by, at }: CommandOf<'resolve'>): Decision {
  const interrupt = find(state, target);
  if (interrupt instanceof WopError) return rejected(interrupt);
  if (interrupt.deadline !== undefined && at >= interrupt.deadline)
    return rejected(new WopError('interrupt_expired', 'The time to answer has passed.'));
  return RESOLVERS[interrupt.kind](state, interrupt, resumeValue, by);
}

type Resolver = (state: RunState, interrupt: Interrupt, resumeValue: Json, by: Answerer) => Decision;

/** Any answer will do: it is what the node goes on with. */
const taken: Resolver = (state, interrupt, resumeValue, by) =>
  settled(state, interrupt, resumeValue, { resolvedBy: nameOf(by, interrupt) });

const RESOLVERS: { readonly [K in Interrupt['kind']]: Resolver } = {
  approval: (state, interrupt, resumeValue, by) => {
    const parsed = ApprovalResume.safeParse(legacyDecision(resumeValue));
    if (!parsed.success) return rejected(validationError(parsed.error, 'resumeValue'));
    const verdict = tally(interrupt, parsed.data, by);
    if (verdict.is === 'rejected') return rejected(verdict.error);
    const decidedBy = nameOf(by, interrupt);
    const { refineFeedback, editedArtifactData } = parsed.data;
    const details = {
      ...(refineFeedback !== undefined && { refineFeedback: refineFeedback as Json }),
      ...(editedArtifactData !== undefined && { editedArtifactData }),
    };
    const received = receivedAs(interrupt, parsed.data, verdict.voter, decidedBy, details, verdict.granted);
    if (verdict.is === 'open') return events(received);
    const { voter: _, override: __, ...given } = parsed.data;
    const value = {
      ...given,
      action: verdict.action,
      decidedBy,
      ...(verdict.voter !== by.principal && !by.byToken && { voter: verdict.voter }),
    } as Json;
    const rest = settled(state, interrupt, value, { action: verdict.action, ...details, resolvedBy: decidedBy });
    return rest.is === 'events' ? events(received, ...rest.events) : rest;
  },
  clarification: (state, interrupt, resumeValue, by) => {
    const parsed = ClarificationResume.safeParse(resumeValue);
    if (!parsed.success) return rejected(validationError(parsed.error, 'resumeValue'));
    const { action, answers = {} } = parsed.data;
    const missing = (interrupt.data as ClarificationData).questions.filter(
      (question) => !Object.hasOwn(answers, question.id) && question['required'] !== false,
    );
    if (action === 'accept' && missing.length > 0) {
      const issues = missing.map((question) => ({ path: `answers.${question.id}`, message: 'is missing' }));
      return rejected(new WopError('validation_error', `The answer to question "${missing[0]?.id}" is missing.`, { issues }));
    }
    const answeredBy = nameOf(by, interrupt);
    const answered: NewEvent[] =
      action === 'accept'
        ? [{ type: 'clarification.resolved', payload: { nodeId: interrupt.nodeId, answers: answers as JsonObject, answeredBy } }]
        : [];
    const rest = settled(state, interrupt, { action, answers } as Json, { action, resolvedBy: answeredBy });
    return rest.is === 'events' ? events(...answered, ...rest.events) : rest;
  },
  'external-event': (state, interrupt, resumeValue, by) => {
    const { correlation } = interrupt.data as ExternalEventData;
    const isObject = typeof resumeValue === 'object' && resumeValue !== null && !Array.isArray(resumeValue);
    const differs = Object.entries(correlation).find(
      ([name, value]) => !isObject || !Object.hasOwn(resumeValue, name) || !same((resumeValue as JsonObject)[name], value),
    );
    if (differs)
      return rejected(
        new WopError(
          'interrupt_mismatch',
          `The answer does not carry the correlation member "${differs[0]}" that this interrupt waits for.`,
        ),
      );
    return taken(state, interrupt, resumeValue, by);
  },
  custom: taken,
  'low-confidence': taken,
};

type Details = {
  readonly action?: string;
  readonly refineFeedback?: Json;
  readonly editedArtifactData?: Json;
  readonly resolvedBy: string;
  readonly outcome?: string;
  readonly reason?: string;
};

function settled(state: RunState, interrupt: Interrupt, resumeValue: Json, details: Details): Decision {
  const { nodeId, id, kind } = interrupt;
  // The node goes on when nothing it asked is open any more.
  const others = openInterrupts(state).some((other) => other.nodeId === nodeId && other.id !== id);
  const resumed: NewEvent[] = others ? [] : [{ type: 'node.resumed', payload: { nodeId, interruptId: id, resumeValue } }];
  return events({ type: 'interrupt.resolved', payload: { nodeId, interruptId: id, kind, resumeValue, ...details } }, ...resumed);
}

/** How a vote stands in the log: by node, or at a governed gate by gate. */
function receivedAs(
  interrupt: Interrupt,
  vote: ApprovalResume,
  voter: string,
  decidedBy: string,
  details: object,
  granted: number,
): NewEvent {
  const { nodeId, data } = interrupt;
  const { gateId, requiredApprovals: required = 1 } = data as ApprovalData;
  const { action, comment, feedback, reason, override } = vote;
  const other = voter !== decidedBy ? { facts: { voter } } : {};
  if (gateId === undefined) {
    return {
      type: 'approval.received',
      payload: {
        nodeId,
        action,
        decidedBy,
        ...(comment !== undefined && { comment }),
        ...(feedback !== undefined && { feedback }),
        ...details,
      },
      ...other,
    };
  }
  if (override) return { type: 'approval.overridden', payload: { gateId, principal: decidedBy, reason: reason ?? comment ?? '' } };
  if (action === 'reject')
    return { type: 'approval.rejected', payload: { gateId, principal: decidedBy, ...(reason !== undefined && { reason }) } };
  return { type: 'approval.granted', payload: { gateId, principal: decidedBy, quorumProgress: { granted, required } } };
}

/** Nobody answered in time: a rejection, never an acceptance; no client can send it. (interrupt.md) */
export function timedOut(state: RunState, { interruptId, at }: CommandOf<'timeout'>): Decision {
  const interrupt = state.interrupts.get(interruptId);
  if (isTerminal(state.status) || interrupt?.status !== 'open' || interrupt.deadline === undefined || at < interrupt.deadline)
    return NOTHING;
  const { nodeId, kind, data } = interrupt;
  const governed = (data as ApprovalData).gateId !== undefined;
  const received: NewEvent[] =
    kind === 'approval' && !governed
      ? [{ type: 'approval.received', payload: { nodeId, action: 'timeout', decidedBy: 'core.system' } }]
      : [];
  const value: Json = kind === 'approval' ? { action: 'reject', reason: 'timeout', decidedBy: 'core.system' } : { action: 'timeout' };
  const rest = settled(state, interrupt, value, { outcome: 'rejected', reason: 'timeout', resolvedBy: 'core.system' });
  return rest.is === 'events' ? events(...received, ...rest.events) : rest;
}

/** `{decision}` is the older form, and the one of governed gates. (execution §3.2, §3.7) */
function legacyDecision(value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || 'action' in value || !('decision' in value)) return value;
  const { decision, feedback, ...rest } = value as { decision: Json; feedback?: Json };
  if (decision === 'approved' || decision === 'granted') return { ...rest, action: 'accept' };
  if (decision === 'overridden') return { ...rest, action: 'accept', override: true };
  if (decision === 'rejected' && typeof feedback === 'string')
    return { ...rest, action: 'refine', refineFeedback: { scope: 'whole', text: feedback } };
  return decision === 'rejected' ? { ...rest, action: 'reject' } : value;
}
