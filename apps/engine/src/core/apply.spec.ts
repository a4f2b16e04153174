import { describe, expect, it } from '@jest/globals';
import { EVENTS, type EventType } from '@isthmus/protocol';
import { apply, fold } from './apply.js';
import { AT, began, completed, fact, failed, logOf, RUN, skipped, started, stateOf } from './given.suite.js';
import { initial, type NewEvent, openInterrupts, type RunState } from './state.js';

const REF = { ref: 'node:a', sha256: 'f'.repeat(64), bytes: 7, untrusted: true } as const;
const asked = (interruptId = 'i0', nodeId = 'a', kind = 'approval', key = nodeId): NewEvent =>
  fact('interrupt.requested', { nodeId, interruptId, kind, key, data: { title: 'Go?' }, metadata: { m: 1 }, resumeSchema: {} });
const suspended = (nodeId = 'a', interruptId = 'i0'): NewEvent =>
  fact('node.suspended', { nodeId, interruptId, kind: 'approval', key: nodeId });
const resolved = (interruptId = 'i0', nodeId = 'a'): NewEvent =>
  fact('interrupt.resolved', { nodeId, interruptId, kind: 'approval', resumeValue: { action: 'accept' }, resolvedBy: 'ada' });
const resumed = (nodeId = 'a', interruptId = 'i0'): NewEvent => fact('node.resumed', { nodeId, interruptId });
const vote = (decidedBy: string, action: string, facts?: { voter: string }): NewEvent =>
  fact('approval.received', { nodeId: 'a', action, decidedBy }, { ...(facts && { facts }) });
const called = fact('agent.toolCalled', {
  agentId: 'core.system',
  toolName: 't',
  callId: 'a:0',
  argsHash: 'h',
  principal: 'p',
  transport: 'mcp',
  serverId: 's',
  nodeId: 'a',
});
const paused = fact('run.paused', { drainPolicy: 'drain-current-node', pausedBy: 'p' });
const child = (childStatus?: string): NewEvent =>
  fact('node.dispatched', { nodeId: 'a', childRunId: 'c', childWorkflowId: 'v', ...(childStatus && { childStatus }) });
const written = (reducer: string, value: number): NewEvent =>
  fact('channel.written', { channel: 'c', value, reducer, writtenAt: new Date(AT).toISOString() });
const gate = fact('interrupt.requested', { nodeId: 'a', interruptId: 'i0', kind: 'approval', key: 'a', data: { gateId: 'g' } });

/** A log, and what of the state it must lead to. */
const MEANINGS: Readonly<Record<EventType, readonly (readonly [string, readonly NewEvent[], (state: RunState) => unknown, unknown])[]>> = {
  'run.started': [
    [
      'gives the run its owner, its workflow and its time',
      [started()],
      ({ owner, workflowId, status, startedAt }) => ({ owner, workflowId, status, startedAt }),
      {
        owner: { tenant: 't', workspace: 'ws', principal: 'p' },
        workflowId: 'w',
        status: 'running',
        startedAt: AT,
      },
    ],
    [
      'makes every input a variable',
      [started({ n: 1 })],
      ({ inputs, variables }) => ({ inputs, variables: [...variables] }),
      {
        inputs: { n: 1 },
        variables: [['n', { is: 'inline', value: 1 }]],
      },
    ],
  ],
  'run.completed': [
    ['ends the run', [started(), fact('run.completed', {})], ({ status, endedAt }) => [status, endedAt], ['completed', AT]],
  ],
  'run.failed': [
    [
      'ends the run with its error',
      [started(), fact('run.failed', { error: { code: 'x', message: 'y' } })],
      ({ status, endedAt, error }) => [status, endedAt, error],
      ['failed', AT, { code: 'x', message: 'y' }],
    ],
  ],
  'run.cancelled': [
    [
      'ends the run with its reason',
      [started(), fact('run.cancelled', { reason: 'why' })],
      ({ status, endedAt, reason }) => [status, endedAt, reason],
      ['cancelled', AT, 'why'],
    ],
    ['needs no reason', [started(), fact('run.cancelled', {})], (state) => 'reason' in state, false],
  ],
  'run.paused': [
    ['makes the run stand still, from then on', [started(), paused], ({ status, pausedAt }) => [status, pausedAt], ['paused', AT]],
    [
      'leaves the status to what the run waits for',
      [started(), began('a'), asked(), suspended(), paused],
      ({ status, pausedAt }) => [status, pausedAt],
      ['waiting-approval', AT],
    ],
  ],
  'run.resumed': [
    [
      'lets the run go on',
      [started(), paused, fact('run.resumed', { resumedBy: 'p' })],
      (state) => [state.status, 'pausedAt' in state],
      ['running', false],
    ],
  ],
  'node.started': [
    [
      'makes the node run, from then on',
      [started(), began('a')],
      ({ nodes }) => nodes.get('a'),
      { status: 'running', startedAt: AT, attempt: 0 },
    ],
    ['counts executions', [started(), began('a'), began('b')], ({ executions }) => executions, 2],
  ],
  'node.completed': [
    [
      'keeps the outputs, and when the node began',
      [started(), began('a'), completed('a', { x: 1 })],
      ({ nodes }) => nodes.get('a'),
      {
        status: 'completed',
        startedAt: AT,
        attempt: 0,
        outputs: { is: 'inline', value: { x: 1 } },
      },
    ],
    [
      'keeps where the outputs stand instead',
      [started(), began('a'), fact('node.completed', { nodeId: 'a', outputs: {} }, { facts: { value: REF } })],
      ({ nodes }) => nodes.get('a')?.outputs,
      { is: 'ref', ...REF },
    ],
    [
      'keeps the verdicts over its edges',
      [started(), began('a'), completed('a', {}, { e1: true, e2: false })],
      ({ edges }) => [...edges],
      [
        ['e1', true],
        ['e2', false],
      ],
    ],
    [
      'may have no outputs',
      [started(), began('a'), fact('node.completed', { nodeId: 'a' })],
      ({ nodes }) => nodes.get('a')?.outputs,
      { is: 'inline', value: {} },
    ],
  ],
  'node.failed': [
    [
      'keeps the error and the verdicts',
      [started(), began('a'), failed('a', { e1: false })],
      ({ nodes, edges }) => [nodes.get('a'), edges.get('e1')],
      [{ status: 'failed', startedAt: AT, attempt: 0, error: { code: 'node_failed', message: 'It failed.' } }, false],
    ],
    ['does not end the run by itself', [started(), began('a'), failed('a')], ({ status }) => status, 'running'],
  ],
  'node.skipped': [
    [
      'is the end of the node, and no execution',
      [started(), skipped('a')],
      ({ nodes, executions }) => [nodes.get('a')?.status, executions],
      ['skipped', 0],
    ],
  ],
  'node.suspended': [
    [
      'makes node and run wait',
      [started(), began('a'), asked(), suspended()],
      ({ nodes, status }) => [nodes.get('a')?.status, status],
      ['suspended', 'waiting-approval'],
    ],
  ],
  'node.resumed': [
    [
      'makes the node run again, with the time it began',
      [started(), began('a'), asked(), suspended(), resolved(), resumed()],
      ({ nodes, status }) => [nodes.get('a'), status],
      [{ status: 'running', startedAt: AT, attempt: 0 }, 'running'],
    ],
  ],
  'node.retried': [
    [
      'makes the node wait for its next attempt',
      [started(), began('a'), fact('node.retried', { nodeId: 'a', attempt: 1, delayMs: 500, lastError: { code: 'x', message: 'y' } })],
      ({ nodes, status }) => [nodes.get('a'), status],
      [{ status: 'retrying', startedAt: AT, attempt: 0, retryAt: AT + 500 }, 'running'],
    ],
  ],
  'node.dispatched': [
    [
      'remembers the run that the node started',
      [started(), began('a'), child()],
      ({ children }) => [...children],
      [['c', { nodeId: 'a', workflowId: 'v', status: 'running' }]],
    ],
    [
      'keeps how that run ended',
      [started(), began('a'), child(), child('completed')],
      ({ children }) => children.get('c')?.status,
      'completed',
    ],
  ],
  'interrupt.requested': [
    [
      'opens an interrupt with all that was asked',
      [started(), began('a'), asked()],
      ({ interrupts }) => interrupts.get('i0'),
      {
        id: 'i0',
        nodeId: 'a',
        kind: 'approval',
        key: 'a',
        data: { title: 'Go?' },
        metadata: { m: 1 },
        resumeSchema: {},
        status: 'open',
        votes: [],
      },
    ],
    [
      'keeps where its artifact stands',
      [
        started(),
        fact('interrupt.requested', { nodeId: 'a', interruptId: 'i0', kind: 'approval', key: 'a', data: {} }, { facts: { value: REF } }),
      ],
      ({ interrupts }) => interrupts.get('i0')?.artifact,
      REF,
    ],
    ['leaves the status to the suspension: durable before visible', [started(), began('a'), asked()], ({ status }) => status, 'running'],
  ],
  'interrupt.resolved': [
    [
      'closes it with its answer',
      [started(), began('a'), asked(), suspended(), resolved()],
      (state) => [state.interrupts.get('i0'), openInterrupts(state)],
      [expect.objectContaining({ status: 'resolved', resumeValue: { action: 'accept' }, resolvedBy: 'ada' }), []],
    ],
    [
      'of an interrupt nobody knows changes nothing',
      [started(), resolved('other')],
      ({ interrupts, status }) => [interrupts.size, status],
      [0, 'running'],
    ],
    [
      'leaves the run waiting for what is still open, in its status',
      [started(), asked('i0', 'a'), suspended('a', 'i0'), asked('i1', 'b', 'clarification'), suspended('b', 'i1'), resolved('i0')],
      ({ status }) => status,
      'waiting-input',
    ],
  ],
  'approval.requested': [
    [
      'is told to people and means nothing to the fold',
      [
        started(),
        fact('approval.requested', {
          nodeId: 'a',
          artifactId: 'a',
          artifactType: 't',
          actions: [],
          interruptId: 'i',
          title: 't',
          requiredApprovals: 1,
        }),
      ],
      ({ status }) => status,
      'running',
    ],
  ],
  'approval.received': [
    [
      'is a vote of who decided',
      [started(), asked(), vote('ada', 'accept')],
      ({ interrupts }) => interrupts.get('i0')?.votes,
      [{ voter: 'ada', action: 'accept' }],
    ],
    [
      'is the vote of whom the answer named',
      [started(), asked(), vote('bot', 'accept', { voter: 'ada' })],
      ({ interrupts }) => interrupts.get('i0')?.votes,
      [{ voter: 'ada', action: 'accept' }],
    ],
    [
      'replaces the same voter’s older one',
      [started(), asked(), vote('ada', 'accept'), vote('bob', 'accept'), vote('ada', 'reject')],
      ({ interrupts }) => interrupts.get('i0')?.votes,
      [
        { voter: 'bob', action: 'accept' },
        { voter: 'ada', action: 'reject' },
      ],
    ],
    [
      'of a gate that is closed changes nothing',
      [started(), asked(), resolved(), vote('ada', 'accept')],
      ({ interrupts }) => interrupts.get('i0')?.votes,
      [],
    ],
  ],
  'approval.granted': [
    [
      'is a vote for it at the gate it names',
      [started(), gate, fact('approval.granted', { gateId: 'g', principal: 'ada' })],
      ({ interrupts }) => interrupts.get('i0')?.votes,
      [{ voter: 'ada', action: 'accept' }],
    ],
    [
      'at another gate changes nothing',
      [started(), gate, fact('approval.granted', { gateId: 'other', principal: 'ada' })],
      ({ interrupts }) => interrupts.get('i0')?.votes,
      [],
    ],
  ],
  'approval.rejected': [
    [
      'is a vote against it, instead of the same voter’s older one',
      [
        started(),
        gate,
        fact('approval.granted', { gateId: 'g', principal: 'ada' }),
        fact('approval.rejected', { gateId: 'g', principal: 'ada' }),
      ],
      ({ interrupts }) => interrupts.get('i0')?.votes,
      [{ voter: 'ada', action: 'reject' }],
    ],
  ],
  'approval.overridden': [
    [
      'is a vote for it by who may override',
      [started(), gate, fact('approval.overridden', { gateId: 'g', principal: 'root', reason: 'now' })],
      ({ interrupts }) => interrupts.get('i0')?.votes,
      [{ voter: 'root', action: 'accept' }],
    ],
  ],
  'clarification.requested': [
    [
      'is told to people and means nothing to the fold',
      [started(), fact('clarification.requested', { nodeId: 'a', questions: [], interruptId: 'i' })],
      ({ status }) => status,
      'running',
    ],
  ],
  'clarification.resolved': [
    [
      'is told to people and means nothing to the fold',
      [started(), fact('clarification.resolved', { nodeId: 'a', answers: {}, answeredBy: 'ada' })],
      ({ status }) => status,
      'running',
    ],
  ],
  'agent.toolCalled': [
    ['is remembered: the call is not announced again', [started(), began('a'), called], ({ calls }) => [...calls], ['a:0']],
  ],
  'agent.toolReturned': [
    [
      'leaves the call remembered',
      [
        started(),
        began('a'),
        called,
        fact('agent.toolReturned', { agentId: 'core.system', toolName: 't', callId: 'a:0', status: 'ok', nodeId: 'a' }),
      ],
      ({ calls }) => [...calls],
      ['a:0'],
    ],
  ],
  'variable.changed': [
    [
      'replaces the value',
      [started({ n: 1 }), fact('variable.changed', { name: 'n', previous: 1, next: 2 })],
      ({ variables }) => variables.get('n'),
      { is: 'inline', value: 2 },
    ],
    [
      'makes a variable that was not there',
      [started(), fact('variable.changed', { name: 'new', next: null })],
      ({ variables }) => variables.get('new'),
      { is: 'inline', value: null },
    ],
    [
      'keeps where the value stands instead',
      [started(), fact('variable.changed', { name: 'n', next: {} }, { facts: { value: REF } })],
      ({ variables }) => variables.get('n'),
      { is: 'ref', ...REF },
    ],
  ],
  'channel.written': [
    [
      'folds with the reducer that was recorded',
      [started(), written('append', 1), written('append', 2)],
      ({ channels }) => channels.get('c'),
      {
        is: 'list',
        entries: [
          { value: 1, at: AT },
          { value: 2, at: AT },
        ],
      },
    ],
    [
      'replaces where its reducer is not known',
      [started(), written('x.y', 1), written('x.y', 2)],
      ({ channels }) => channels.get('c'),
      { is: 'value', value: 2 },
    ],
  ],
  'replay.diverged': [
    [
      'is told to people and means nothing to the fold',
      [started(), fact('replay.diverged', { sourceRunId: 's', atSequence: 1, divergenceKind: 'output', divergencePoint: 'a' })],
      ({ status }) => status,
      'running',
    ],
  ],
  'cap.breached': [
    [
      'is told to people; the failure comes as its own fact',
      [started(), fact('cap.breached', { kind: 'node-executions', limit: 1, observed: 2 })],
      ({ status }) => status,
      'running',
    ],
  ],
};

describe('what facts mean', () => {
  const rows = Object.entries(MEANINGS).flatMap(([type, meanings]) => meanings.map((meaning) => [type, ...meaning] as const));
  it.each(rows)('%s %s', (_type, _what, events, look, expected) => {
    expect(look(stateOf(...events))).toEqual(expected);
  });

  it('is told of every type there is', () => {
    expect(Object.keys(MEANINGS).sort()).toEqual(Object.keys(EVENTS).sort());
  });

  it('of each fact moves the head to its sequence, and nothing that was given changes', () => {
    const before = stateOf(started(), began('a'));
    const kept = structuredClone(before);
    for (const [event] of Object.values(MEANINGS).flatMap((meanings) => meanings.map(([, events]) => events.slice(-1)))) {
      const [entry] = logOf([event as NewEvent], 7);
      if (entry) expect(apply(before, entry).head).toBe(7);
    }
    expect(before).toEqual(kept);
  });

  it('of a type of a newer engine is passed over, also of one that every object has', () => {
    for (const type of ['run.of-tomorrow', 'toString', 'constructor', '__proto__']) {
      const state = fold(initial(RUN), [...logOf([started()]), { ...logOf([began('a')], 1)[0], type } as never]);
      expect(state).toEqual({ ...stateOf(started()), head: 1 });
    }
  });

  it('does not wake a run that has ended: an answer that was written before its end leaves it ended', () => {
    expect(stateOf(started(), asked(), suspended(), fact('run.cancelled', {}), resolved()).status).toBe('cancelled');
  });
});
