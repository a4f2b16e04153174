import { type ApprovalData, type ApprovalResume, type JsonObject, WopError } from '@isthmus/protocol';
import type { Answerer } from './decision.js';
import type { Interrupt } from './state.js';

export type Tally =
  | { readonly is: 'rejected'; readonly error: WopError }
  | { readonly is: 'open'; readonly voter: string; readonly granted: number }
  | { readonly is: 'settled'; readonly voter: string; readonly granted: number; readonly action: ApprovalResume['action'] };

/**
 * Where an approval stands with one more vote. One vote per voter, the newest counts; N accepts grant; one reject rejects
 * under `single-veto`, floor(N/2)+1 under `majority`; `refine` leaves the gate; `ask` never does; an override counts as one
 * vote unless the gate says that it bypasses the quorum. (interrupt-profiles.md, RFC 0051)
 */
export function tally(interrupt: Interrupt, vote: ApprovalResume, by: Answerer): Tally {
  const data = interrupt.data as ApprovalData;
  const problem = problemOf(data, vote) ?? ineligible(data, vote, by);
  if (problem) return { is: 'rejected', error: problem };
  // Only a gate that names nobody lets the answer say who votes. (rulings, Interrupts)
  const voter = !namesApprovers(data) && vote.voter ? vote.voter : by.principal;
  const votes = [...interrupt.votes.filter((one) => one.voter !== voter), { voter, action: vote.action }];
  const count = (...actions: string[]): number => votes.filter(({ action }) => actions.includes(action)).length;
  const required = data.requiredApprovals ?? 1;
  const vetoes = data.rejectionPolicy === 'majority' ? Math.floor(required / 2) + 1 : 1;
  const granted = count('accept', 'edit-accept');
  const settle = (action: ApprovalResume['action']): Tally => ({ is: 'settled', voter, granted, action });
  if (vote.action === 'refine') return settle('refine');
  if (vote.override && data.overrideBypassesQuorum) return settle('accept');
  if (count('reject') >= vetoes) return settle('reject');
  if (granted >= required) return settle(vote.action === 'edit-accept' ? 'edit-accept' : 'accept');
  return { is: 'open', voter, granted };
}

const namesApprovers = ({ approversList = [], approverGroupRefs = [], approverRoleRefs = [] }: ApprovalData): boolean =>
  approversList.length + approverGroupRefs.length + approverRoleRefs.length > 0;

/** Group and role references are held against what authz says of the principal now. (RFC 0104) */
function ineligible(data: ApprovalData, vote: ApprovalResume, by: Answerer): WopError | undefined {
  const refuse = (message: string, reason: string): WopError => new WopError('forbidden', message, { reason });
  if (by.byToken && (data.authRequired || namesApprovers(data) || data.gateId !== undefined))
    return refuse('This gate asks for a credential; a token is not enough.', 'approver-ineligible');
  if (vote.override) {
    const may = (data.overriders ?? []).some((role) => role === by.principal || (by.roles ?? []).includes(role));
    return may ? undefined : refuse('You may not override this gate.', 'approver-ineligible');
  }
  if (!namesApprovers(data)) return undefined;
  const { approversList = [], approverGroupRefs = [], approverRoleRefs = [] } = data;
  const isNamed =
    approversList.includes(by.principal) ||
    approverGroupRefs.some((ref) => (by.groups ?? []).includes(ref)) ||
    approverRoleRefs.some((ref) => (by.roles ?? []).includes(ref));
  return isNamed ? undefined : refuse('This gate names its approvers, and you are not one of them.', 'approver-ineligible');
}

function problemOf(data: ApprovalData, vote: ApprovalResume): WopError | undefined {
  const refuse = (path: string, message: string): WopError =>
    new WopError('validation_error', `The resumeValue is not valid at "${path}": ${message}.`, {
      issues: [{ path, message }],
    } as JsonObject);
  if (!data.actions.includes(vote.action)) return refuse('action', `this gate offers ${data.actions.join(', ')}`);
  if (vote.action === 'refine' && !vote.refineFeedback) return refuse('refineFeedback', 'is missing: refine says what to change');
  if (vote.action === 'edit-accept' && vote.editedArtifactData === undefined)
    return refuse('editedArtifactData', 'is missing: edit-accept brings the edited artifact');
  if (vote.override && !(vote.reason ?? vote.comment)?.trim()) return refuse('reason', 'is missing: an override says why');
  return undefined;
}
