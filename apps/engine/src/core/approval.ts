import { type ApprovalData, type ApprovalResume, type JsonObject, WopError } from '@isthmus/protocol';
import type { Interrupt } from './state.js';

export type Tally =
  | { readonly is: 'rejected'; readonly error: WopError }
  | { readonly is: 'open'; readonly voter: string }
  | { readonly is: 'settled'; readonly voter: string; readonly action: ApprovalResume['action'] };

/**
 * Where an approval stands with one more vote. One vote per voter, the newest counts; N accepts grant; one reject rejects
 * under `single-veto`, floor(N/2)+1 under `majority`; `refine` leaves the gate; `ask` never does. (interrupt-profiles.md)
 */
export function tally(interrupt: Interrupt, vote: ApprovalResume, by: string): Tally {
  const data = interrupt.data as ApprovalData;
  const problem = problemOf(data, vote);
  if (problem) return { is: 'rejected', error: problem };
  const named = data.approversList ?? [];
  if (named.length > 0 && !named.includes(by)) {
    return {
      is: 'rejected',
      error: new WopError('forbidden', 'This gate names its approvers, and you are not one of them.', { reason: 'approver-ineligible' }),
    };
  }
  // Only a gate that names nobody lets the answer say who votes. (rulings, Interrupts)
  const voter = named.length === 0 && vote.voter ? vote.voter : by;
  const votes = [...interrupt.votes.filter((one) => one.voter !== voter), { voter, action: vote.action }];
  const count = (...actions: string[]): number => votes.filter(({ action }) => actions.includes(action)).length;
  const required = data.requiredApprovals ?? 1;
  const vetoes = data.rejectionPolicy === 'majority' ? Math.floor(required / 2) + 1 : 1;
  if (vote.action === 'refine') return { is: 'settled', voter, action: 'refine' };
  if (count('reject') >= vetoes) return { is: 'settled', voter, action: 'reject' };
  if (count('accept', 'edit-accept') >= required)
    return { is: 'settled', voter, action: vote.action === 'edit-accept' ? 'edit-accept' : 'accept' };
  return { is: 'open', voter };
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
  return undefined;
}
