import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@isthmus/protocol';
import { began, completed, fact, failed, graphOf, skipped, started, stateOf } from './given.suite.js';
import { contentOf, outputsOf } from './outputs.js';
import type { NewEvent } from './state.js';

const ran = (nodeId: string, outputs: JsonObject): readonly NewEvent[] => [began(nodeId), completed(nodeId, outputs)];
const outputs = (nodes: Parameters<typeof graphOf>[0], edges: Parameters<typeof graphOf>[1], ...events: readonly NewEvent[]) =>
  outputsOf(graphOf(nodes, edges), stateOf(started(), ...events), contentOf);

describe('what a run gives', () => {
  it('is what the node gives that leads nowhere', () => {
    expect(outputs(['a', 'b'], ['a>b'], ...ran('a', { x: 1 }), ...ran('b', { y: 2 }))).toEqual({ y: 2 });
  });

  it('is by node id where several lead nowhere', () => {
    expect(outputs(['a', 'b'], [], ...ran('a', { x: 1 }), ...ran('b', { y: 2 }))).toEqual({ a: { x: 1 }, b: { y: 2 } });
  });

  it('is what primary nodes give, wherever they stand', () => {
    const nodes = [{ id: 'a', outputRole: 'primary' }, 'b'];
    expect(outputs(nodes, ['a>b'], ...ran('a', { x: 1 }), ...ran('b', { y: 2 }))).toEqual({ x: 1 });
    const both = [{ id: 'a', outputRole: 'primary' }, { id: 'b', outputRole: 'primary' }, 'c'];
    expect(outputs(both, ['a>b', 'b>c'], ...ran('a', { x: 1 }), ...ran('b', { y: 2 }), ...ran('c', { z: 3 }))).toEqual({
      a: { x: 1 },
      b: { y: 2 },
    });
  });

  it('falls back to what leads nowhere when no primary node was reached', () => {
    expect(outputs([{ id: 'a', outputRole: 'primary' }, 'b'], [], skipped('a'), ...ran('b', { y: 2 }))).toEqual({ y: 2 });
  });

  it('leaves out secondary nodes, nodes that failed or were skipped, and nodes that only publish', () => {
    const nodes = [{ id: 'a', outputRole: 'secondary' }, 'b', 'c', 'd', { id: 'e', typeId: 'core.openwop.mcp.expose-tool' }];
    const all = [...ran('a', { x: 1 }), began('b'), failed('b'), skipped('c'), ...ran('d', { y: 2 }), ...ran('e', { handle: 'tool' })];
    expect(outputs(nodes, [], ...all)).toEqual({ y: 2 });
  });

  it('is empty when nothing is left', () => {
    expect(outputs(['a'], [], skipped('a'))).toEqual({});
  });

  it('shows hash, size and trust of what stands elsewhere', () => {
    const value = { ref: 'node:a', sha256: 'f'.repeat(64), bytes: 7, untrusted: true };
    const shown = { sha256: 'f'.repeat(64), length: 7, contentTrust: 'untrusted' };
    expect(outputs(['a'], [], began('a'), fact('node.completed', { nodeId: 'a' }, { facts: { value } }))).toEqual(shown);
    expect(contentOf({ is: 'ref', ...value, untrusted: false })).toEqual({ sha256: 'f'.repeat(64), length: 7 });
  });
});
