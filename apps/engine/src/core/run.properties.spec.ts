import { describe, expect, it } from '@jest/globals';
import { TERMINAL_EVENTS } from '@isthmus/protocol';
import fc from 'fast-check';
import { Batch } from './batch.js';
import type { Command } from './decide.js';
import { AT, began, begin, done, graphOf, logOf, RUN, shapeOf, started } from './given.suite.js';
import { fold } from './apply.js';
import { type Plan, plans, type Script, scripts, World } from './random-run.suite.js';
import { initial, type LoggedEvent } from './state.js';

const RUNS = { numRuns: 150 };

function play(plan: Plan, script: Script, calm = false): World {
  const world = new World(plan);
  for (const step of script) world.step(step, calm);
  world.finish();
  world.crash();
  return world;
}

const terminals = (log: readonly LoggedEvent[]): string[] => log.map(({ type }) => type).filter((type) => TERMINAL_EVENTS.has(type));
const count = (log: readonly LoggedEvent[], types: readonly string[], nodeId: string): number =>
  log.filter(({ type, payload }) => types.includes(type) && 'nodeId' in payload && payload.nodeId === nodeId).length;

// Crashes, doubled and late reports, votes, cancels at any moment: `World` checks at every step that deciding is a function of
// the log, that folding it gives the state in memory, and that what is owed is the same after a crash.
describe('any run of any graph, whatever happens to it', () => {
  it('comes to rest, ended: exactly one terminal fact, and it is the last', () => {
    fc.assert(
      fc.property(plans(), scripts, (plan, script) => {
        const { log } = play(plan, script);
        expect(terminals(log)).toHaveLength(1);
        expect(TERMINAL_EVENTS.has(log.at(-1)?.type ?? '')).toBe(true);
      }),
      RUNS,
    );
  });

  it('starts once and numbers its facts without a gap', () => {
    fc.assert(
      fc.property(plans(), scripts, (plan, script) => {
        const { log } = play(plan, script);
        expect(log.map(({ sequence }) => sequence)).toEqual(log.map((_, index) => index));
        expect(log.filter(({ type }) => type === 'run.started')).toHaveLength(1);
        expect(log[0]?.type).toBe('run.started');
      }),
      RUNS,
    );
  });

  it('begins and ends every node once at most, and no node that was skipped', () => {
    fc.assert(
      fc.property(plans(), scripts, (plan, script) => {
        const { log } = play(plan, script);
        for (const nodeId of plan.graph.nodes.keys()) {
          const [starts, ends, skips] = [['node.started'], ['node.completed', 'node.failed'], ['node.skipped']].map((types) =>
            count(log, types, nodeId),
          ) as [number, number, number];
          expect(starts + skips).toBeLessThanOrEqual(1);
          expect(ends).toBeLessThanOrEqual(starts);
        }
      }),
      RUNS,
    );
  });

  it('completes only when every node has ended, and fails only when one failed that nobody dealt with, or a limit was reached', () => {
    fc.assert(
      fc.property(plans(), scripts, (plan, script) => {
        const { log } = play(plan, script);
        const end = log.at(-1);
        if (end?.type === 'run.completed')
          for (const nodeId of plan.graph.nodes.keys())
            expect(count(log, ['node.completed', 'node.failed', 'node.skipped'], nodeId)).toBe(1);
        if (end?.type === 'run.failed')
          expect(
            end.payload.failedNodeId !== undefined
              ? count(log, ['node.failed'], end.payload.failedNodeId)
              : log.filter(({ type }) => type === 'cap.breached').length,
          ).toBe(1);
      }),
      RUNS,
    );
  });

  it('resolves every interrupt once at most, after it was asked', () => {
    fc.assert(
      fc.property(plans(), scripts, (plan, script) => {
        const { log } = play(plan, script);
        const seen = new Map<string, string[]>();
        for (const { type, payload } of log)
          if (type === 'interrupt.requested' || type === 'interrupt.resolved')
            seen.set(payload.interruptId, [...(seen.get(payload.interruptId) ?? []), type]);
        for (const order of seen.values()) expect(['interrupt.requested', 'interrupt.resolved'].slice(0, order.length)).toEqual(order);
      }),
      RUNS,
    );
  });

  it('completes when no node fails, no edge has a condition and nobody ends it', () => {
    fc.assert(
      fc.property(plans({ tame: true }), scripts, (plan, script) => {
        expect(play(plan, script, true).log.at(-1)?.type).toBe('run.completed');
      }),
      RUNS,
    );
  });
});

describe('decisions that are appended together', () => {
  const graph = graphOf(['a', 'b'], ['a>b']);
  const commands: Command[] = [begin('a'), done('a'), done('a'), begin('b'), done('b'), { type: 'cancel' as const, by: 'p' }].map(
    (wish) => ({ ...wish, at: AT }),
  );

  it('each see the state that the earlier ones lead to', () => {
    const batch = new Batch(graph, fold(initial(RUN), logOf([started()])));
    for (const command of commands) batch.add(command);
    expect(shapeOf(batch.events)).toEqual(['node.started:a', 'node.completed:a', 'node.started:b', 'node.completed:b', 'run.completed']);
    expect(batch.state).toEqual(fold(initial(RUN), logOf([started(), ...batch.events])));
  });

  it('leave the state they began with as it was, and add nothing when they are rejected', () => {
    const base = fold(initial(RUN), logOf([started(), began('a')]));
    const batch = new Batch(graph, base);
    expect(batch.add({ type: 'resolve', target: { nodeId: 'a' }, resumeValue: {}, by: { principal: 'p' }, at: AT })).toMatchObject({
      is: 'rejected',
    });
    expect([batch.events, batch.state, batch.base]).toEqual([[], base, base]);
  });
});
