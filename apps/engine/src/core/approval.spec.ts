import { describe, expect, it } from '@jest/globals';
import type { ApprovalResume, JsonObject } from '@isthmus/protocol';
import { tally } from './approval.js';
import { answers, asksApproval, began, given, graphOf, started } from './given.suite.js';

const ACTIONS = ['accept', 'reject', 'refine', 'edit-accept', 'ask'];
const one = graphOf(['a']);
const gate = (data: JsonObject) => given(one, [started(), began('a')]).when(asksApproval('a', { actions: ACTIONS, ...data }));

/** Votes as `ada:accept`, put one after the other; how the gate stands after the last. */
function outcomeOf(data: JsonObject, votes: readonly string[]): string {
  let now = gate(data);
  for (const vote of votes) {
    const [by, action] = vote.split(':') as [string, string];
    now = now.when(answers('a', { action, refineFeedback: { scope: 'whole' }, editedArtifactData: 1 }, by));
  }
  const [interrupt] = now.state.interrupts.values();
  return interrupt?.status === 'open' ? 'open' : String((interrupt?.resumeValue as JsonObject | undefined)?.['action']);
}

describe('an approval', () => {
  const quorum = { requiredApprovals: 2 };
  const majority = { requiredApprovals: 3, rejectionPolicy: 'majority' };
  it.each([
    // data, votes, outcome
    [{}, ['ada:accept'], 'accept'],
    [{}, ['ada:reject'], 'reject'],
    [{}, ['ada:edit-accept'], 'edit-accept'],
    [{}, ['ada:refine'], 'refine'],
    [{}, ['ada:ask'], 'open'],
    [quorum, ['ada:accept'], 'open'],
    [quorum, ['ada:accept', 'ada:accept'], 'open'],
    [quorum, ['ada:accept', 'bob:accept'], 'accept'],
    [quorum, ['ada:accept', 'bob:edit-accept'], 'edit-accept'],
    [quorum, ['ada:accept', 'bob:ask'], 'open'],
    [quorum, ['ada:accept', 'bob:ask', 'eve:accept'], 'accept'],
    // The newer vote of the same voter replaces the older one.
    [quorum, ['ada:accept', 'ada:ask', 'bob:accept'], 'open'],
    // A single veto, at any count.
    [quorum, ['ada:accept', 'bob:reject'], 'reject'],
    [{ requiredApprovals: 5 }, ['ada:reject'], 'reject'],
    // A majority: floor(3/2)+1 rejections.
    [majority, ['ada:reject'], 'open'],
    [majority, ['ada:reject', 'ada:reject'], 'open'],
    [majority, ['ada:reject', 'bob:reject'], 'reject'],
    [majority, ['ada:reject', 'ada:accept', 'bob:reject'], 'open'],
    [majority, ['ada:accept', 'bob:reject', 'eve:accept', 'dan:accept'], 'accept'],
    [{ requiredApprovals: 1, rejectionPolicy: 'majority' }, ['ada:reject'], 'reject'],
    // To refine is for one to say, at any quorum.
    [{ requiredApprovals: 5 }, ['ada:accept', 'bob:refine'], 'refine'],
  ])('%j with %j stands at: %s', (data, votes, outcome) => {
    expect(outcomeOf(data, votes)).toBe(outcome);
  });

  it('is of those it names, and of nobody else, whatever the answer says', () => {
    const named = { approversList: ['ada'] };
    gate(named)
      .when(answers('a', { action: 'accept' }, 'eve'))
      .isRejected('forbidden');
    gate(named)
      .when(answers('a', { action: 'accept', voter: 'ada' }, 'eve'))
      .isRejected('forbidden');
    expect(outcomeOf(named, ['ada:accept'])).toBe('accept');
  });

  it('that names approvers takes one vote of each, and ignores whom the answer names as voter', () => {
    const named = gate({ approversList: ['ada', 'bob'], requiredApprovals: 2 });
    const twice = named
      .when(answers('a', { action: 'accept', voter: 'x' }, 'ada'))
      .when(answers('a', { action: 'accept', voter: 'y' }, 'ada'));
    expect(twice.state.status).toBe('waiting-approval');
    const settled = twice
      .when(answers('a', { action: 'accept', voter: 'z' }, 'bob'))
      .yields('approval.received:a', 'interrupt.resolved:a', 'node.resumed:a');
    expect(JSON.stringify(settled.events)).not.toContain('"voter"');
  });

  it('that names nobody counts the voters the answers name, while the decision stays the principal’s', () => {
    const open = gate({ requiredApprovals: 2 });
    const first = open.when(answers('a', { action: 'accept', voter: 'x' }, 'bot')).yields('approval.received:a');
    expect(first.when(answers('a', { action: 'accept', voter: 'x' }, 'bot')).state.status).toBe('waiting-approval');
    const { events } = first
      .when(answers('a', { action: 'accept', voter: 'y' }, 'bot'))
      .yields('approval.received:a', 'interrupt.resolved:a', 'node.resumed:a');
    expect(events[0]?.payload).toMatchObject({ decidedBy: 'bot' });
  });

  it('that was stored without a number needs one', () => {
    const interrupt = { id: 'i', nodeId: 'a', kind: 'approval', key: 'a', data: { actions: ACTIONS }, status: 'open', votes: [] } as const;
    expect(tally(interrupt, { action: 'accept' } as ApprovalResume, { principal: 'ada' })).toEqual({
      is: 'settled',
      voter: 'ada',
      granted: 1,
      action: 'accept',
    });
  });
});
