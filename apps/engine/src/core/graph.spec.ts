import { describe, expect, it } from '@jest/globals';
import { isWopError, type WorkflowDefinition } from '@isthmus/protocol';
import { definitionOf, graphOf, inTime } from './given.suite.js';
import { compile } from './graph.js';

function problemsOf(definition: WorkflowDefinition): { path: string; message: string }[] {
  try {
    compile(definition);
    return [];
  } catch (error) {
    if (!isWopError(error)) throw error;
    expect(error.code).toBe('validation_error');
    const issues = error.details?.['issues'] as { path: string; message: string }[];
    expect(error.message).toContain(issues[0]?.path);
    return issues;
  }
}
const edge = (id: string, from: string, to: string, rest: object = {}) => ({ id, sourceNodeId: from, targetNodeId: to, ...rest });

describe('a definition is refused, with the place', () => {
  it.each<[string, WorkflowDefinition, readonly string[]]>([
    ['a node id is there twice', definitionOf(['a', 'b', 'a', 'a']), ['nodes.2', 'nodes.3']],
    ['an edge id is there twice', definitionOf(['a', 'b'], [edge('e', 'a', 'b'), edge('e', 'a', 'b')]), ['edges.1']],
    [
      'a variable is there twice',
      definitionOf(['a'], [], {
        variables: [
          { name: 'v', type: 'string' },
          { name: 'v', type: 'number' },
        ],
      }),
      ['variables.1'],
    ],
    ['an edge comes from nowhere', definitionOf(['a'], [edge('e', 'x', 'a')]), ['edges.0.sourceNodeId']],
    ['an edge leads nowhere', definitionOf(['a'], ['a>x']), ['edges.0.targetNodeId']],
    [
      'a port is connected to nowhere',
      definitionOf(['a', { id: 'b', inputs: { p: { type: 'connection', nodeId: 'x', outputKey: 'o' } } }]),
      ['nodes.1.inputs.p.nodeId'],
    ],
    [
      'a condition cannot be used',
      definitionOf(['a', 'b'], [edge('e', 'a', 'b', { condition: { type: 'regex', left: 'status', right: '(' } })]),
      ['edges.0.condition'],
    ],
    ['a condition is empty', definitionOf(['a', 'b'], [edge('e', 'a', 'b', { condition: {} })]), ['edges.0.condition']],
    [
      'an expression does not parse',
      definitionOf([{ id: 'a', inputs: { p: { type: 'expression', expression: '1 +' } } }]),
      ['nodes.0.inputs.p'],
    ],
    [
      'several things are wrong: all of them',
      definitionOf(['a', 'a'], ['x>y', edge('c', 'a', 'a', { condition: {} })]),
      ['nodes.1', 'edges.0.sourceNodeId', 'edges.0.targetNodeId', 'edges.1.condition'],
    ],
    ['a node waits for itself', definitionOf(['a'], ['a>a']), ['edges']],
    ['nodes wait for each other', definitionOf(['s', 'a', 'b', 'c'], ['s>a', 'a>b', 'b>c', 'c>a']), ['edges']],
  ])('where %s', (_what, definition, paths) => {
    expect(problemsOf(definition).map(({ path }) => path)).toEqual(paths);
  });

  it('and names who waits in the circle', () => {
    const [problem] = problemsOf(definitionOf(['s', 'a', 'b'], ['s>a', 'a>b', 'b>a']));
    expect(problem?.message).toMatch(/nodes a, b wait for each other/);
  });

  it('with twenty problems at most: the answer stays small', () => {
    expect(problemsOf(definitionOf(Array.from({ length: 50 }, () => 'a')))).toHaveLength(20);
  });
});

describe('a definition that can run', () => {
  it('knows for every node what comes in and what goes out, edges by id', () => {
    const { incoming, outgoing, nodes } = graphOf(['a', 'b', 'c'], [edge('z', 'a', 'c'), edge('y', 'b', 'c'), edge('x', 'a', 'c')]);
    expect(incoming.get('c')?.map(({ id }) => id)).toEqual(['x', 'y', 'z']);
    expect(outgoing.get('a')?.map(({ id }) => id)).toEqual(['x', 'z']);
    expect([incoming.get('a'), outgoing.get('c')]).toEqual([[], []]);
    expect([...nodes.keys()]).toEqual(['a', 'b', 'c']);
  });

  it('may join, split and skip levels without being a circle', () => {
    expect(problemsOf(definitionOf(['a', 'b', 'c', 'd'], ['a>b', 'a>c', 'b>d', 'c>d', 'a>d']))).toEqual([]);
  });

  it('may use names that every object has', () => {
    const graph = graphOf(['constructor', '__proto__', 'toString'], ['constructor>__proto__', '__proto__>toString']);
    expect(graph.incoming.get('toString')).toHaveLength(1);
  });

  it('is compiled in time at the largest size there is', () => {
    const nodes = Array.from({ length: 1_000 }, (_, index) => `n${index}`);
    const edges = Array.from({ length: 4_000 }, (_, index) => edge(`e${index}`, `n${index % 500}`, `n${500 + ((index * 7) % 500)}`));
    inTime(2_000, () => graphOf(nodes, edges));
  });
});
