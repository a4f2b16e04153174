import { describe, expect, it } from '@jest/globals';
import type { Wish } from './decide.js';
import {
  answers,
  asksApproval,
  asksQuestions,
  AT,
  began,
  begin,
  broke,
  cancel,
  completed,
  done,
  fact,
  failed,
  given,
  graphOf,
  RUN,
  started,
} from './given.suite.js';
import type { NewEvent } from './state.js';

const ADA = { principal: 'ada' };
const one = graphOf(['a']);
const chain = graphOf(['a', 'b', 'c'], ['a>b', 'b>c']);
const ENDS: Readonly<Record<string, NewEvent>> = {
  completed: fact('run.completed', { outputs: {} }),
  failed: fact('run.failed', { error: { code: 'x', message: 'x' } }),
  cancelled: fact('run.cancelled', { cancelledBy: 'p' }),
};

describe('the start of a run', () => {
  const start: Wish = { type: 'start', started: { workflowId: 'w', inputs: { n: 1 }, transport: 'rest', owner: { tenant: 't' } } };

  it('is one fact, with the versions that a replay needs', () => {
    const { events } = given(chain, []).when(start).yields('run.started');
    expect(events[0]?.payload).toEqual({
      workflowId: 'w',
      inputs: { n: 1 },
      transport: 'rest',
      owner: { tenant: 't' },
      engineVersion: '1',
      activityIdentityRecipe: 'openwop:activity:v2',
    });
  });

  it('happens once', () => {
    given(chain, [started()]).when(start).yields();
  });

  it('is one fact as well where nodes are disabled: what follows is decided when the run is first driven', () => {
    const off = graphOf([{ id: 'a', disabled: true }, 'b'], ['a>b']);
    given(off, []).when(start).yields('run.started').when({ type: 'proceed' }).yields('node.skipped:a', 'node.skipped:b', 'run.completed');
    given(graphOf([{ id: 'a', disabled: true }, 'b']), [])
      .when(start)
      .when({ type: 'proceed' })
      .yields('node.skipped:a');
    given(chain, []).when(start).when({ type: 'proceed' }).yields();
  });
});

describe('a node that begins', () => {
  it('is announced with its type and as its first attempt', () => {
    const { events } = given(one, [started()]).when(begin('a')).yields('node.started:a');
    expect(events[0]?.payload).toEqual({ nodeId: 'a', typeId: 'core.noop', attempt: 0 });
  });

  it('begins once', () => {
    given(one, [started(), began('a')])
      .when(begin('a'))
      .yields();
    given(chain, [started(), began('a'), completed('a')])
      .when(begin('a'))
      .yields();
  });

  it('does not begin beyond the ceiling: the run fails and no node.started is written for it (RFC 0058)', () => {
    const { events, state } = given(chain, [started(), began('a'), completed('a')])
      .when(begin('b', 1))
      .yields('cap.breached', 'run.failed');
    expect(events[0]?.payload).toEqual({ kind: 'node-executions', limit: 1, observed: 2, nodeId: 'b' });
    expect(state).toMatchObject({ status: 'failed', error: { code: 'recursion_limit_exceeded' }, executions: 1 });
  });

  it('may use the ceiling up to the last one', () => {
    given(chain, [started(), began('a'), completed('a')])
      .when(begin('b', 2))
      .yields('node.started:b');
  });
});

describe('a report', () => {
  it('of a success completes the node and, when it was the last one, the run', () => {
    const { events, state } = given(one, [started(), began('a')])
      .when(done('a', { x: 1 }))
      .yields('node.completed:a', 'run.completed');
    expect(events[1]?.payload).toEqual({ outputs: { x: 1 } });
    expect(state).toMatchObject({ status: 'completed', endedAt: AT });
  });

  it('leaves the run going while others have not ended', () => {
    given(graphOf(['a', 'b']), [started(), began('a')])
      .when(done('a'))
      .yields('node.completed:a');
  });

  it('of a failure that nobody deals with fails the run, with the error and the node', () => {
    const { events } = given(chain, [started(), began('a')])
      .when(broke('a'))
      .yields('node.failed:a', 'run.failed');
    expect(events[0]?.payload).toMatchObject({ nodeId: 'a', attempts: 1, error: { code: 'no_luck' } });
    expect(events[1]?.payload).toEqual({ failedNodeId: 'a', error: { code: 'no_luck', message: 'Nothing found.' } });
  });

  it.each(['any_failed', 'all_complete'])('of a failure is dealt with by a target whose rule is %s', (triggerRule) => {
    const graph = graphOf(['a', 'b'], [{ id: 'e', sourceNodeId: 'a', targetNodeId: 'b', triggerRule }]);
    given(graph, [started(), began('a')])
      .when(broke('a'))
      .yields('node.failed:a');
    // The edge was not taken: nobody deals with it after all.
    given(graph, [started(), began('a')])
      .when(broke('a', { e: false }))
      .yields('node.failed:a', 'run.failed');
  });

  it('of a failure fails the run when the node that would deal with it is disabled', () => {
    const graph = graphOf(
      ['a', { id: 'b', disabled: true }],
      [{ id: 'e', sourceNodeId: 'a', targetNodeId: 'b', triggerRule: 'any_failed' }],
    );
    given(graph, [started(), began('a')])
      .when(broke('a'))
      .yields('node.failed:a', 'run.failed');
  });

  it('skips what no branch leads to any more, however far it reaches, in one batch', () => {
    const { events } = given(chain, [started(), began('a')])
      .when(done('a', {}, { 'a-b': false }))
      .yields('node.completed:a', 'node.skipped:b', 'node.skipped:c', 'run.completed');
    expect(events[1]?.payload).toEqual({ nodeId: 'b', reason: 'no branch leads here' });
  });

  it('skips as far in whatever order the nodes are written', () => {
    const backwards = graphOf(['d', 'c', 'b', 'a'], ['a>b', 'b>c', 'c>d']);
    given(backwards, [started(), began('a')])
      .when(done('a', {}, { 'a-b': false }))
      .yields('node.completed:a', 'node.skipped:b', 'node.skipped:c', 'node.skipped:d', 'run.completed');
  });

  it('keeps the verdicts over the edges beside the fact, so that folding needs no values', () => {
    const { events, state } = given(chain, [started(), began('a')]).when(done('a', {}, { 'a-b': true }));
    expect(events[0]?.facts).toEqual({ edges: { 'a-b': true } });
    expect(state.edges.get('a-b')).toBe(true);
  });

  it('changes variables before its node completes, and says what stood there before', () => {
    const sets: Wish = {
      type: 'report',
      nodeId: 'a',
      outcome: { is: 'completed', outputs: { is: 'inline', value: {} }, sets: [{ name: 'n', next: { is: 'inline', value: 2 } }] },
      edges: {},
    };
    const { events } = given(one, [started({ n: 1 }), began('a')])
      .when(sets)
      .yields('variable.changed:a', 'node.completed:a', 'run.completed');
    expect(events[0]?.payload).toEqual({ name: 'n', previous: 1, next: 2, nodeId: 'a' });
    expect(given(one, [started(), began('a')]).when(sets).events[0]?.payload).toEqual({ name: 'n', next: 2, nodeId: 'a' });
  });

  it('shows hash, size and trust of what may not stand in the log, everywhere it would appear', () => {
    const ref = { ref: 'node:a', sha256: 'f'.repeat(64), bytes: 7, untrusted: true } as const;
    const { events, state } = given(one, [started(), began('a')])
      .when({
        type: 'report',
        nodeId: 'a',
        outcome: {
          is: 'completed',
          outputs: { is: 'ref', ...ref },
          sets: [{ name: 'n', next: { is: 'ref', ...ref, ref: 'variable:a/n' } }],
        },
        edges: {},
      })
      .yields('variable.changed:a', 'node.completed:a', 'run.completed');
    const shown = { sha256: ref.sha256, length: 7, contentTrust: 'untrusted' };
    expect(events.map(({ payload }) => payload)).toEqual([
      { name: 'n', next: shown, nodeId: 'a' },
      { nodeId: 'a', outputs: shown },
      { outputs: shown },
    ]);
    expect(events.map(({ untrusted }) => untrusted)).toEqual([true, true, true]);
    expect(events[1]?.facts).toEqual({ edges: {}, value: ref });
    expect(state.nodes.get('a')?.outputs).toEqual({ is: 'ref', ...ref });
    expect(state.variables.get('n')).toMatchObject({ is: 'ref', ref: 'variable:a/n' });
  });

  const LATE: readonly [string, readonly NewEvent[]][] = [
    ['of a node that never began', [started()]],
    ['of a node that has completed', [started(), began('a'), completed('a')]],
    ['of a node that has failed', [started(), began('a'), failed('a')]],
    [
      'of a node that waits for an answer',
      [started(), began('a'), fact('node.suspended', { nodeId: 'a', interruptId: 'i', kind: 'approval', key: 'a' })],
    ],
    ...Object.entries(ENDS).map(([status, end]) => [`to a run that is ${status}`, [started(), began('a'), end]] as [string, NewEvent[]]),
  ];
  it.each(LATE)('%s is late and decides to nothing', (_what, events) => {
    const graph = graphOf(['a', 'b']);
    for (const report of [done('a'), broke('a'), asksApproval('a')]) given(graph, events).when(report).yields();
  });

  it('that comes twice counts once', () => {
    given(chain, [started(), began('a')])
      .when(done('a'))
      .yields('node.completed:a')
      .when(done('a', { other: true }))
      .yields();
  });
});

describe('the announcement of a call', () => {
  const call: Wish = {
    type: 'announce',
    event: {
      type: 'agent.toolCalled',
      payload: {
        agentId: 'core.system',
        toolName: 't',
        callId: 'a:0',
        argsHash: 'h',
        principal: 'p',
        transport: 'mcp',
        serverId: 's',
        nodeId: 'a',
      },
    },
  };
  it('is written once per call, however often the node is entered', () => {
    given(one, [started(), began('a')])
      .when(call)
      .yields('agent.toolCalled:a')
      .when(call)
      .yields();
  });
  it('is not written to a run that has ended', () => {
    for (const end of Object.values(ENDS))
      given(one, [started(), began('a'), end])
        .when(call)
        .yields();
  });
});

describe('a node that asks', () => {
  it('suspends in the order that suites read, and the run waits in the status of the kind', () => {
    const approval = given(one, [started(), began('a')])
      .when(asksApproval('a', { actions: ['accept', 'edit-accept'], approversList: ['ada'], requiredApprovals: 2 }))
      .yields('interrupt.requested:a', 'approval.requested:a', 'node.suspended:a');
    expect(approval.state.status).toBe('waiting-approval');
    expect(approval.events[0]?.payload).toMatchObject({ nodeId: 'a', interruptId: `${RUN}.i0`, kind: 'approval', key: 'a' });
    // The event's enum says `edit` where the interrupt's data says `edit-accept`.
    expect(approval.events[1]?.payload).toEqual({
      nodeId: 'a',
      artifactId: 'a',
      artifactType: 'node.inputs',
      actions: ['accept', 'edit'],
      interruptId: `${RUN}.i0`,
      title: 'Go?',
      requiredApprovals: 2,
      approversList: ['ada'],
    });
    const questions = given(one, [started(), began('a')])
      .when(asksQuestions('a', 'q'))
      .yields('interrupt.requested:a', 'clarification.requested:a', 'node.suspended:a');
    expect(questions.state.status).toBe('waiting-input');
  });

  it('gives every interrupt of the run an id of its own', () => {
    const both = given(graphOf(['a', 'b']), [started(), began('a'), began('b')])
      .when(asksApproval('a'))
      .when(asksQuestions('b', 'q'));
    expect([...both.state.interrupts.keys()]).toEqual([`${RUN}.i0`, `${RUN}.i1`]);
    // In the status of what was asked first.
    expect(both.state.status).toBe('waiting-approval');
    expect(both.when(answers('a', { action: 'accept' })).state.status).toBe('waiting-input');
  });

  it('asks several things in one suspension and goes on when the last is answered', () => {
    const ask = (key: string) => ({ request: { kind: 'clarification' as const, key, data: { questions: [{ id: 'q', question: 'q?' }] } } });
    const asked = given(one, [started(), began('a')])
      .when({ type: 'report', nodeId: 'a', outcome: { is: 'suspended', requests: [ask('k1'), ask('k2')] }, edges: {} })
      .yields(
        'interrupt.requested:a',
        'clarification.requested:a',
        'interrupt.requested:a',
        'clarification.requested:a',
        'node.suspended:a',
      );
    asked
      .when({ type: 'resolve', target: { interruptId: `${RUN}.i1` }, resumeValue: { answers: { q: 2 } }, by: ADA })
      .yields('clarification.resolved:a', 'interrupt.resolved:a')
      .when({ type: 'resolve', target: { interruptId: `${RUN}.i0` }, resumeValue: { answers: { q: 1 } }, by: ADA })
      .yields('clarification.resolved:a', 'interrupt.resolved:a', 'node.resumed:a');
  });

  it('asks the same key once', () => {
    given(one, [started(), began('a')])
      .when(asksApproval('a'))
      .when(answers('a', { action: 'accept' }))
      .when(asksApproval('a'))
      .yields();
  });
});

describe('an answer', () => {
  const waiting = (graph = one) => given(graph, [started(), began('a')]).when(asksApproval('a'));
  const accept = answers('a', { action: 'accept' });

  it('resumes its node in the order that suites read', () => {
    const { events, state } = waiting().when(accept).yields('approval.received:a', 'interrupt.resolved:a', 'node.resumed:a');
    expect(events[0]?.payload).toEqual({ nodeId: 'a', action: 'accept', decidedBy: 'ada' });
    expect(events[1]?.payload).toMatchObject({ interruptId: `${RUN}.i0`, kind: 'approval', action: 'accept', resolvedBy: 'ada' });
    expect(events[2]?.payload).toMatchObject({ interruptId: `${RUN}.i0`, resumeValue: { action: 'accept', decidedBy: 'ada' } });
    expect(state.status).toBe('running');
    expect(state.nodes.get('a')?.status).toBe('running');
  });

  it('finds its interrupt by node or by id', () => {
    waiting()
      .when({ type: 'resolve', target: { interruptId: `${RUN}.i0` }, resumeValue: { action: 'accept' }, by: ADA })
      .yields('approval.received:a', 'interrupt.resolved:a', 'node.resumed:a');
    waiting()
      .when({ type: 'resolve', target: { interruptId: 'other' }, resumeValue: { action: 'accept' }, by: ADA })
      .isRejected('interrupt_not_found');
    waiting()
      .when(answers('b', { action: 'accept' }))
      .isRejected('interrupt_not_found');
  });

  it('comes once: the second is refused', () => {
    waiting().when(accept).when(accept).isRejected('interrupt_already_resolved');
  });

  it('to a run that has ended is refused with the code of its end', () => {
    waiting().when(cancel).when(accept).isRejected('interrupt_cancelled');
    const other = graphOf(['a', 'b']);
    const failing = given(other, [started(), began('a'), began('b')])
      .when(asksApproval('a'))
      .when(broke('b'));
    expect(failing.state.status).toBe('failed');
    failing.when(accept).isRejected('interrupt_already_resolved');
  });

  it.each([
    ['that is no object', 'yes'],
    ['without an action', {}],
    ['with an action nobody knows', { action: 'maybe' }],
    ['with an action that the host alone may take', { action: 'timeout' }],
    ['with an action the gate does not offer', { action: 'refine', refineFeedback: { scope: 'whole' } }],
    ['with a comment that is none', { action: 'accept', comment: 7 }],
  ])('%s is refused and the gate stays open', (_what, resumeValue) => {
    waiting()
      .when({ type: 'resolve', target: { nodeId: 'a' }, resumeValue: resumeValue as never, by: ADA })
      .isRejected('validation_error');
  });

  it('refine says what to change, and leaves the gate', () => {
    const refining = given(one, [started(), began('a')]).when(asksApproval('a', { actions: ['accept', 'refine'] }));
    refining.when(answers('a', { action: 'refine' })).isRejected('validation_error');
    const refineFeedback = { scope: 'whole', text: 'shorter' };
    const { events } = refining
      .when(answers('a', { action: 'refine', refineFeedback }))
      .yields('approval.received:a', 'interrupt.resolved:a', 'node.resumed:a');
    for (const { payload } of events.slice(0, 2)) expect(payload).toMatchObject({ action: 'refine', refineFeedback });
  });

  it('edit-accept brings the edited artifact', () => {
    const editing = given(one, [started(), began('a')]).when(asksApproval('a', { actions: ['accept', 'edit-accept'] }));
    editing.when(answers('a', { action: 'edit-accept' })).isRejected('validation_error');
    const { events } = editing
      .when(answers('a', { action: 'edit-accept', editedArtifactData: null }))
      .yields('approval.received:a', 'interrupt.resolved:a', 'node.resumed:a');
    expect(events[1]?.payload).toMatchObject({ action: 'edit-accept', editedArtifactData: null });
  });

  it('ask never leaves the gate', () => {
    const asking = given(one, [started(), began('a')]).when(asksApproval('a', { actions: ['accept', 'ask'] }));
    const { state } = asking.when(answers('a', { action: 'ask', comment: 'why?' })).yields('approval.received:a');
    expect(state.status).toBe('waiting-approval');
  });

  it.each([
    [{ decision: 'approved' }, 'accept'],
    [{ decision: 'rejected' }, 'reject'],
    [{ decision: 'rejected', feedback: 'too long' }, 'refine'],
  ])('in the older form %j means %s', (resumeValue, action) => {
    const { events } = given(one, [started(), began('a')])
      .when(asksApproval('a', { actions: ['accept', 'reject', 'refine'] }))
      .when(answers('a', resumeValue));
    expect(events[0]?.payload).toMatchObject({
      action,
      ...(action === 'refine' && { refineFeedback: { scope: 'whole', text: 'too long' } }),
    });
  });

  it('in the older form with a word nobody knows is refused', () => {
    waiting()
      .when(answers('a', { decision: 'perhaps' }))
      .isRejected('validation_error');
  });

  it('is decided by the principal that authz knows, whoever it says it is', () => {
    const spoofed = answers('a', { action: 'accept', decidedBy: 'root', voter: 'root' }, 'mallory');
    for (const data of [{ title: 'Go?' }, { title: 'Go?', approversList: ['mallory'] }]) {
      const { events } = given(one, [started(), began('a')])
        .when(asksApproval('a', data))
        .when(spoofed);
      expect(events[0]?.payload).toMatchObject({ decidedBy: 'mallory' });
      expect(events[1]?.payload).toMatchObject({ resolvedBy: 'mallory', resumeValue: { decidedBy: 'mallory' } });
      expect(events[2]?.payload).toMatchObject({ resumeValue: { decidedBy: 'mallory' } });
    }
  });
});

describe('answers to questions', () => {
  const asked = (...questions: Parameters<typeof asksQuestions>[1][]) =>
    given(one, [started(), began('a')]).when(asksQuestions('a', ...questions));

  it.each([
    ['an object', { answers: { q1: 'blue', q2: 2 } }],
    [
      'a list',
      {
        answers: [
          { id: 'q1', answer: 'blue' },
          { id: 'q2', answer: 2 },
        ],
      },
    ],
  ])('come as %s and are kept by question id', (_form, resumeValue) => {
    const { events } = asked('q1', 'q2')
      .when(answers('a', resumeValue))
      .yields('clarification.resolved:a', 'interrupt.resolved:a', 'node.resumed:a');
    expect(events[0]?.payload).toEqual({ nodeId: 'a', answers: { q1: 'blue', q2: 2 }, answeredBy: 'ada' });
    expect(events[2]?.payload).toMatchObject({ resumeValue: { action: 'accept', answers: { q1: 'blue', q2: 2 } } });
  });

  it('must be there for every question that needs one, own members only', () => {
    asked('q1', 'q2')
      .when(answers('a', { answers: { q1: 'x' } }))
      .isRejected('validation_error');
    asked('toString')
      .when(answers('a', { answers: {} }))
      .isRejected('validation_error');
    asked('q1').when(answers('a', {})).isRejected('validation_error');
    asked('q1', { id: 'q2', question: '?', required: false })
      .when(answers('a', { answers: { q1: null } }))
      .yields('clarification.resolved:a', 'interrupt.resolved:a', 'node.resumed:a');
  });

  it.each(['decline', 'cancel'])('may be a %s, which needs no answers and is not told as an answer', (action) => {
    const { events } = asked('q1').when(answers('a', { action })).yields('interrupt.resolved:a', 'node.resumed:a');
    expect(events[0]?.payload).toMatchObject({ action, resumeValue: { action } });
  });
});

describe('a wish to end a run', () => {
  const ENDINGS: readonly [Wish, readonly string[], object][] = [
    [{ type: 'cancel', by: 'p', reason: 'why' }, ['run.cancelled'], { status: 'cancelled', reason: 'why' }],
    [
      { type: 'expire', limitMs: 100, observedMs: 150 },
      ['cap.breached', 'run.failed'],
      { status: 'failed', error: { code: 'run_timeout' } },
    ],
    [{ type: 'poison', takeovers: 5 }, ['run.failed'], { status: 'failed', error: { code: 'run_poisoned' } }],
  ];

  it.each(ENDINGS)('%j ends it, whatever it does', (wish, shapes, state) => {
    expect(
      given(chain, [started(), began('a')])
        .when(wish)
        .yields(...shapes).state,
    ).toMatchObject({ ...state, endedAt: AT });
    given(one, [started(), began('a')])
      .when(asksApproval('a'))
      .when(wish)
      .yields(...shapes);
  });

  it.each(ENDINGS)('%j of a run that has ended decides to nothing: it ends once', (wish) => {
    for (const end of Object.values(ENDS))
      given(chain, [started(), began('a'), end])
        .when(wish)
        .yields();
  });

  it('says who cancelled, and a reason only where one was given', () => {
    expect(given(one, [started()]).when(cancel).events[0]?.payload).toEqual({ cancelledBy: 'p' });
  });

  it('observes more than the limit, as the event must', () => {
    const breached = given(one, [started()]).when({ type: 'expire', limitMs: 100, observedMs: 100 }).events[0];
    expect(breached?.payload).toEqual({ kind: 'run-duration', limit: 100, observed: 101 });
  });

  it('begins nothing afterwards', () => {
    for (const end of Object.values(ENDS)) given(chain, [started(), end]).when(begin('a')).yields().when({ type: 'proceed' }).yields();
  });
});
