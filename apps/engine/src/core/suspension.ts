import { type ApprovalData, type ClarificationData, type InterruptRequest, interruptId, type JsonObject } from '@isthmus/protocol';
import type { Asked } from './decision.js';
import type { NewEvent, RunState } from './state.js';

/** Durable before it is visible: the requests and the suspension are one batch. Order as the suites read it (execution §3.4). */
export function suspension(state: RunState, nodeId: string, asked: readonly Asked[]): readonly NewEvent[] {
  const known = new Set([...state.interrupts.values()].map(({ key }) => key));
  const fresh = asked.filter(({ request }) => !known.has(request.key));
  const requests = fresh.map((item, index) => ({ ...item, id: interruptId(state.idBase, state.interrupts.size + index) }));
  const announced = requests.flatMap(({ request, artifact, untrusted, id }): NewEvent[] => {
    const { kind, key, data, resumeSchema, timeoutMs, metadata } = request;
    const requested: NewEvent<'interrupt.requested'> = {
      type: 'interrupt.requested',
      payload: {
        nodeId,
        interruptId: id,
        kind,
        key,
        data,
        ...(resumeSchema && { resumeSchema }),
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(metadata && { metadata }),
      },
      ...(artifact && { facts: { value: artifact } }),
      ...(untrusted && { untrusted: true }),
    };
    return [requested, ...FAMILY[kind](nodeId, id, data)];
  });
  const [first] = requests;
  if (!first) return [];
  return [
    ...announced,
    { type: 'node.suspended', payload: { nodeId, interruptId: first.id, kind: first.request.kind, key: first.request.key } },
  ];
}

type Family = (nodeId: string, interruptId: string, data: JsonObject) => readonly NewEvent[];
const NONE: Family = () => [];

/** The older events of the kinds that have some. A governed gate is announced by `interrupt.requested` only. (RFC 0051) */
const FAMILY: { readonly [K in InterruptRequest['kind']]: Family } = {
  approval: (nodeId, id, data) => {
    const { artifactId, artifactType, actions, title, requiredApprovals, approversList, gateId } = data as ApprovalData;
    if (gateId !== undefined) return [];
    // The event's own enum says `edit` where the interrupt's data says `edit-accept`. (contradiction 11)
    const offered = actions.map((action) => (action === 'edit-accept' ? 'edit' : action));
    const payload = { nodeId, artifactId, artifactType, actions: offered, interruptId: id, title, requiredApprovals };
    return [{ type: 'approval.requested', payload: { ...payload, ...(approversList && { approversList }) } }];
  },
  clarification: (nodeId, id, data) => [
    {
      type: 'clarification.requested',
      payload: { nodeId, questions: (data as ClarificationData).questions as JsonObject[], interruptId: id },
    },
  ],
  'external-event': NONE,
  custom: NONE,
  'low-confidence': NONE,
};
