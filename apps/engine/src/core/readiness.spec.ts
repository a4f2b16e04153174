import { describe, expect, it } from '@jest/globals';
import { TRIGGER_RULES } from '@isthmus/protocol';
import { began, completed, failed, graphOf, skipped, started, stateOf } from './given.suite.js';
import { pending } from './pending.js';
import { isHandled, readiness } from './readiness.js';
import type { NewEvent } from './state.js';

/** What came along an edge, as the log tells it. */
const ARRIVALS: Readonly<Record<string, (source: string, edge: string) => readonly NewEvent[]>> = {
  pending: () => [],
  running: (source) => [began(source)],
  success: (source, edge) => [began(source), completed(source, {}, { [edge]: true })],
  failure: (source) => [began(source), failed(source)],
  skipped: (source) => [skipped(source)],
  untaken: (source, edge) => [began(source), completed(source, {}, { [edge]: false })],
  'failure untaken': (source, edge) => [began(source), failed(source, { [edge]: false })],
};

/** Two sources, in either order; then what each rule says: all_success, any_success, all_complete, none_failed, any_failed. */
const TABLE: readonly (readonly [string, string, string])[] = [
  ['pending', 'pending', 'wait wait wait wait wait'],
  ['pending', 'running', 'wait wait wait wait wait'],
  ['pending', 'success', 'wait run  wait wait wait'],
  ['pending', 'failure', 'skip wait wait skip run '],
  ['pending', 'skipped', 'wait wait wait wait wait'],
  ['pending', 'untaken', 'wait wait wait wait wait'],
  ['running', 'success', 'wait run  wait wait wait'],
  ['running', 'failure', 'skip wait wait skip run '],
  ['success', 'success', 'run  run  run  run  skip'],
  ['success', 'failure', 'skip run  run  skip run '],
  ['success', 'skipped', 'run  run  run  run  skip'],
  ['success', 'untaken', 'run  run  run  run  skip'],
  ['failure', 'failure', 'skip skip run  skip run '],
  ['failure', 'skipped', 'skip skip run  skip run '],
  ['failure', 'untaken', 'skip skip run  skip run '],
  ['failure untaken', 'success', 'run  run  run  run  skip'],
  ['failure untaken', 'skipped', 'skip skip skip run  skip'],
  ['skipped', 'skipped', 'skip skip skip run  skip'],
  ['skipped', 'untaken', 'skip skip skip run  skip'],
  ['untaken', 'untaken', 'skip skip skip run  skip'],
];

const target = (triggerRule?: string, node: object = {}) =>
  graphOf(
    ['a', 'b', { id: 'c', ...node }],
    ['a', 'b'].map((source) => ({ id: source, sourceNodeId: source, targetNodeId: 'c', ...(triggerRule && { triggerRule }) })),
  );

describe('a node with two sources', () => {
  const rows = TABLE.flatMap(([first, second, verdicts]) =>
    TRIGGER_RULES.map((rule, index) => [first, second, rule, verdicts.split(/\s+/)[index] ?? ''] as const),
  );
  it.each(rows)('%s and %s under %s: %s', (first, second, rule, verdict) => {
    for (const [a, b] of [
      [first, second],
      [second, first],
    ] as const) {
      const state = stateOf(started(), ...(ARRIVALS[a]?.('a', 'a') ?? []), ...(ARRIVALS[b]?.('b', 'b') ?? []));
      expect(readiness(target(rule), state, 'c').is).toBe(verdict);
    }
  });

  it('tells every rule there is', () => {
    expect(TRIGGER_RULES).toEqual(['all_success', 'any_success', 'all_complete', 'none_failed', 'any_failed']);
  });

  it('goes by all_success where no rule is given, and by that of its first edge by id where edges disagree', () => {
    const half = stateOf(started(), began('a'), completed('a'));
    expect(readiness(target(), half, 'c').is).toBe('wait');
    const disagreeing = graphOf(
      ['a', 'b', 'c'],
      [
        { id: 'z', sourceNodeId: 'a', targetNodeId: 'c', triggerRule: 'all_success' },
        { id: 'm', sourceNodeId: 'b', targetNodeId: 'c', triggerRule: 'any_success' },
      ],
    );
    expect(readiness(disagreeing, half, 'c').is).toBe('run');
  });
});

describe('a node', () => {
  it('without sources is ready', () => {
    expect(readiness(graphOf(['a']), stateOf(started()), 'a')).toEqual({ is: 'run' });
  });

  it('that is disabled is skipped, whatever came', () => {
    for (const [first] of TABLE) {
      const state = stateOf(started(), ...(ARRIVALS[first]?.('a', 'a') ?? []));
      expect(readiness(target('any_success', { disabled: true }), state, 'c')).toEqual({ is: 'skip', reason: 'disabled' });
    }
  });

  it('says why it is skipped', () => {
    const state = stateOf(started(), ...(ARRIVALS['failure']?.('a', 'a') ?? []), skipped('b'));
    expect(readiness(target('all_success'), state, 'c')).toEqual({ is: 'skip', reason: 'a source failed' });
    expect(readiness(target('any_success'), state, 'c')).toEqual({ is: 'skip', reason: 'no source succeeded' });
    expect(readiness(target('any_failed'), stateOf(started(), skipped('a'), skipped('b')), 'c')).toEqual({
      is: 'skip',
      reason: 'no source failed',
    });
  });
});

describe('the failure of a node', () => {
  it.each(TRIGGER_RULES)('under %s', (rule) => {
    const state = stateOf(started(), began('a'), failed('a'));
    const isDealtWith = rule === 'any_failed' || rule === 'all_complete';
    expect(isHandled(target(rule), state, 'a')).toBe(isDealtWith);
    expect(isHandled(target(rule, { disabled: true }), state, 'a')).toBe(false);
    expect(isHandled(target(rule), stateOf(started(), began('a'), failed('a', { a: false })), 'a')).toBe(false);
  });
});

describe('what a run owes', () => {
  const graph = graphOf(['a', 'b', 'c', 'd'], ['a>c', 'b>c', 'c>d']);
  it('is every node that is ready, in the order of the definition', () => {
    expect(pending(graph, stateOf(started()))).toEqual([
      { nodeId: 'a', is: 'begin' },
      { nodeId: 'b', is: 'begin' },
    ]);
  });
  it('is to enter again what began and has no outcome', () => {
    expect(pending(graph, stateOf(started(), began('b'), began('a'), completed('a')))).toEqual([{ nodeId: 'b', is: 'reenter' }]);
  });
  it('is nothing while it waits for an answer, before it has begun and after it has ended', () => {
    const waits = [started(), began('a'), completed('a'), began('b')];
    const suspended = { type: 'node.suspended', payload: { nodeId: 'b', interruptId: 'i', kind: 'approval', key: 'b' } } as NewEvent;
    expect(pending(graph, stateOf(...waits, suspended))).toEqual([]);
    expect(pending(graph, stateOf())).toEqual([]);
    for (const end of [
      { type: 'run.completed', payload: {} },
      { type: 'run.cancelled', payload: {} },
    ] as NewEvent[])
      expect(pending(graph, stateOf(started(), began('a'), end))).toEqual([]);
  });
});
