import { describe, expect, it } from '@jest/globals';
import { type Json, type JsonObject, RunOutcome, RunSnapshot } from '@isthmus/protocol';
import {
  AT,
  answers,
  asksApproval,
  asksQuestions,
  began,
  begin,
  broke,
  cancel,
  completed,
  done,
  fact,
  given,
  graphOf,
  RUN,
  started,
  stateOf,
} from './given.suite.js';
import type { Read } from './inputs.js';
import { contentOf } from './outputs.js';
import { outcomeOf, snapshotOf } from './snapshot.js';
import type { NewEvent, RunState } from './state.js';

const STORE: Readonly<Record<string, Json>> = { tool: { result: 'SECRET' }, list: ['SECRET'], art: { draft: 'SECRET' } };
const read: Read = (stored) => (stored.is === 'ref' ? (STORE[stored.ref] as Json) : contentOf(stored));
const ref = (name: string, untrusted = true) => ({ ref: name, sha256: 'f'.repeat(64), bytes: 7, untrusted });
const kept = (nodeId: string, name: string, untrusted = true): NewEvent =>
  fact('node.completed', { nodeId }, { facts: { value: ref(name, untrusted) } });

const AROUND = { revision: 1, options: {}, family: { parentRun: null, parentNode: null, sourceRun: null, mode: null } } as const;
const graph = graphOf(['a', 'b']);
const snapshot = (state: RunState) => RunSnapshot.parse(snapshotOf(graph, state, { ...AROUND, revision: 3 }, read));
const outcome = (state: RunState) => RunOutcome.parse(outcomeOf(graph, state, read));

describe('a snapshot', () => {
  it('says where the run stands, as the document has it', () => {
    expect(snapshot(stateOf(started({ n: 1 }), began('a')))).toEqual({
      runId: RUN,
      workflowId: 'w',
      status: 'running',
      owner: { tenant: 't', workspace: 'ws', principal: 'p' },
      currentNodeId: 'a',
      startedAt: new Date(AT).toISOString(),
      nodeStates: { a: { status: 'running', attempt: 0 } },
      variables: { n: 1 },
      inputs: { n: 1 },
      engineVersion: '1',
      eventLogSchemaVersion: 2,
      workflowRevision: 3,
    });
  });

  it('echoes what the run was asked with', () => {
    const options = { configurable: { recursionLimit: 5, mine: 'x' }, tags: ['t'], metadata: { m: 1 } };
    expect(snapshotOf(graph, stateOf(started()), { ...AROUND, options }, read)).toMatchObject(options);
  });

  it('of a run that completed has outputs and the time of its end, and no current node', () => {
    const { state } = given(graphOf(['a']), [started(), began('a')]).when(done('a', { x: 1 }));
    const shown = RunSnapshot.parse(snapshotOf(graphOf(['a']), state, AROUND, read));
    expect(shown).toMatchObject({
      status: 'completed',
      outputs: { x: 1 },
      completedAt: new Date(AT).toISOString(),
      variables: { a: { x: 1 } },
    });
    expect(shown).not.toHaveProperty('currentNodeId');
  });

  it('of a run that failed has the error, of the run and of the node, and no outputs', () => {
    const { state } = given(graph, [started(), began('a')]).when(broke('a'));
    const shown = snapshot(state);
    expect(shown).toMatchObject({
      status: 'failed',
      error: { code: 'no_luck' },
      nodeStates: { a: { status: 'failed', error: { code: 'no_luck' } } },
    });
    expect(shown).not.toHaveProperty('outputs');
  });

  it('of a run that waits has what is asked, the first as the interrupt and as the current node', () => {
    const { state } = given(graph, [started(), began('a'), began('b')])
      .when(asksQuestions('b', 'q'))
      .when(asksApproval('a'));
    expect(snapshot(state)).toMatchObject({
      status: 'waiting-input',
      currentNodeId: 'b',
      interrupt: { interruptId: `${RUN}.i0`, nodeId: 'b', kind: 'clarification', key: 'b', payload: { questions: [{ id: 'q' }] } },
      interrupts: [{ nodeId: 'b' }, { nodeId: 'a', kind: 'approval' }],
    });
  });

  it('shows no interrupt that was answered, nor any of a run that has ended', () => {
    const asked = given(graph, [started(), began('a')]).when(asksApproval('a'));
    expect(snapshot(asked.when(answers('a', { action: 'accept' })).state)).not.toHaveProperty('interrupt');
    expect(snapshot(asked.when(cancel).state)).not.toHaveProperty('interrupt');
  });

  it('gives results of nodes by their id, with their trust; a variable of that name comes first', () => {
    const state = stateOf(
      started({ b: 'mine' }),
      began('a'),
      kept('a', 'tool'),
      began('b'),
      completed('b', { x: 1 }),
      fact('variable.changed', { name: 'list', next: {} }, { facts: { value: ref('list') } }),
      fact('variable.changed', { name: 'large', next: {} }, { facts: { value: ref('tool', false) } }),
    );
    expect(snapshot(state).variables).toEqual({
      a: { result: 'SECRET', contentTrust: 'untrusted' },
      b: 'mine',
      list: { value: ['SECRET'], contentTrust: 'untrusted' },
      large: { result: 'SECRET' },
    });
  });

  it('shows what is to be approved, with its trust', () => {
    const request = {
      request: {
        kind: 'approval' as const,
        key: 'a',
        data: { title: 'Go?', actions: ['accept'], artifactId: 'a', artifactType: 't', requiredApprovals: 1 },
      },
      artifact: ref('art'),
    };
    const { state } = given(graph, [started(), began('a')]).when({
      type: 'report',
      nodeId: 'a',
      outcome: { is: 'suspended', requests: [request] },
      edges: {},
    });
    expect(snapshot(state).interrupt?.payload).toMatchObject({ artifactData: STORE['art'], contentTrust: 'untrusted' });
  });
});

describe('an outcome', () => {
  it('is working while nothing is asked and nothing has ended', () => {
    expect(outcome(stateOf(started(), began('a')))).toEqual({ is: 'working', status: 'running' });
  });

  it('is waiting with all that is asked', () => {
    const { state } = given(graph, [started(), began('a')])
      .when(asksApproval('a'))
      .when(begin('b'))
      .when(asksQuestions('b', 'q'));
    expect(outcome(state)).toMatchObject({ is: 'waiting', status: 'waiting-approval', interrupts: [{ nodeId: 'a' }, { nodeId: 'b' }] });
  });

  it('is completed with the outputs themselves, and says whether to trust them', () => {
    const end = fact('run.completed', { outputs: {} });
    const trusted: JsonObject = { is: 'completed', outputs: { a: { x: 1 }, b: { y: 2 } }, contentTrust: 'trusted' };
    expect(outcome(stateOf(started(), began('a'), completed('a', { x: 1 }), began('b'), completed('b', { y: 2 }), end))).toEqual(trusted);
    expect(outcome(stateOf(started(), began('a'), kept('a', 'tool', false), end))).toEqual({
      is: 'completed',
      outputs: { result: 'SECRET' },
      contentTrust: 'trusted',
    });
    expect(outcome(stateOf(started(), began('a'), kept('a', 'tool'), end))).toEqual({
      is: 'completed',
      outputs: { result: 'SECRET' },
      contentTrust: 'untrusted',
    });
  });

  it('is failed or cancelled with the reason', () => {
    expect(outcome(given(graph, [started(), began('a')]).when(broke('a')).state)).toEqual({
      is: 'failed',
      error: { code: 'no_luck', message: 'Nothing found.' },
    });
    const cancelled: Parameters<ReturnType<typeof given>['when']>[0] = { type: 'cancel', by: 'p', reason: 'why' };
    expect(outcome(given(graph, [started()]).when(cancelled).state)).toEqual({ is: 'cancelled', reason: 'why' });
    expect(outcome(given(graph, [started()]).when(cancel).state)).toEqual({ is: 'cancelled' });
  });
});
