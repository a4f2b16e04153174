import { describe, expect, it } from '@jest/globals';
import { type Json, type RunSnapshot, type RunStatus, toRunEvent } from '@isthmus/protocol';
import type { RunRecord } from './read-log.js';
import { diffRuns } from './run-diff.js';

type Fact = readonly [type: string, payload?: Json];
type More = { status?: RunStatus; isCut?: boolean; variables?: Record<string, Json>; channels?: Record<string, Json>; at?: number };

function record(runId: string, facts: readonly Fact[], { status = 'completed', isCut = false, at = 0, ...state }: More = {}): RunRecord {
  const events = facts.map(([type, payload = {}], sequence) => toRunEvent(runId, sequence, new Date(at + sequence), { type, payload }));
  return { runId, status, events, isCut, snapshot: { status, variables: {}, ...state } as unknown as RunSnapshot };
}
const FACTS: readonly Fact[] = [['run.started'], ['node.started', { nodeId: 'a' }], ['node.completed', { nodeId: 'a' }], ['run.completed']];

describe('the diff of two runs', () => {
  it('is empty for a run and itself, and for two that say the same at other times', () => {
    const same = { divergedAtSeq: null, eventDiffs: [], stateDiff: {} };
    expect(diffRuns(record('r1', FACTS), record('r1', FACTS))).toEqual({ a: 'r1', b: 'r1', ...same });
    expect(diffRuns(record('r1', FACTS), record('r2', FACTS, { at: 9_000 }))).toEqual({ a: 'r1', b: 'r2', ...same });
  });

  it('takes ids that are made of the run for the same, and those of a fork as well', () => {
    const asks = (runId: string, base = runId) => record(runId, [['interrupt.requested', { interruptId: `${base}.i0` }]]);
    expect(diffRuns(asks('r1'), asks('r2')).divergedAtSeq).toBeNull();
    expect(diffRuns(asks('r1'), asks('r2', 'r1')).divergedAtSeq).toBeNull();
    expect(diffRuns(asks('r1'), asks('r2', 'r3')).divergedAtSeq).toBe(0);
  });

  it('begins where they part, in the order of the log, and says what is on either side', () => {
    const a = record('r1', FACTS);
    const b = record('r2', [['run.started'], ['node.started', { nodeId: 'b' }], ['node.completed', { nodeId: 'a' }]], { status: 'failed' });
    const diff = diffRuns(a, b);
    expect(diff.divergedAtSeq).toBe(1);
    expect(diff.eventDiffs).toEqual([
      { seq: 1, op: 'changed', aEvent: a.events[1], bEvent: b.events[1] },
      { seq: 3, op: 'removed', aEvent: a.events[3] },
    ]);
    expect(diffRuns(b, a).eventDiffs.at(-1)).toEqual({ seq: 3, op: 'added', bEvent: a.events[3] });
    expect(diff.stateDiff).toEqual({ status: { a: 'completed', b: 'failed' } });
  });

  it('does not mind the order of members', () => {
    expect(diffRuns(record('r1', [['x', { a: 1, b: 2 }]]), record('r2', [['x', { b: 2, a: 1 }]])).divergedAtSeq).toBeNull();
  });

  it('tells variables and channels apart name by name, whatever they are called', () => {
    const a = record('r1', FACTS, { variables: { same: [1], gone: 1, changed: 'x' }, channels: { c: [1] } });
    const b = record('r2', FACTS, { variables: { same: [1], changed: 'y', constructor: 2 } });
    expect(diffRuns(a, b).stateDiff).toEqual({
      variables: { changed: { a: 'x', b: 'y' }, constructor: { b: 2 }, gone: { a: 1 } },
      channels: { c: { a: [1] } },
    });
  });

  it.each([
    ['is still running', { status: 'running' as const }],
    ['was too long to read', { isCut: true }],
  ])('compares only what is there when one %s, and says so', (_, more) => {
    const diff = diffRuns(record('r1', FACTS), record('r2', FACTS.slice(0, 2), more));
    expect(diff).toMatchObject({ divergedAtSeq: null, eventDiffs: [], truncated: true });
  });
});
