import { describe, expect, it } from '@jest/globals';
import { CreateRunBody } from './runs.js';
import { MAX_NODES, WorkflowDefinition } from './workflow.js';

const small = { id: 'hello', name: 'Hello', nodes: [{ id: 'a', typeId: 'core.noop' }] };
const refusal = (definition: unknown): string[] => {
  const result = WorkflowDefinition.safeParse(definition);
  return result.success ? [] : result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.code}`);
};

describe('a workflow definition', () => {
  it('may be small: the obvious is filled in', () => {
    expect(WorkflowDefinition.parse(small)).toEqual({
      ...small,
      version: '1',
      nodes: [{ id: 'a', typeId: 'core.noop', config: {}, inputs: {} }],
      edges: [],
      triggers: [],
      variables: [],
      metadata: {},
      settings: {},
    });
  });

  it('means the same once the obvious is written down', () => {
    const once = WorkflowDefinition.parse(small);
    expect(WorkflowDefinition.parse(JSON.parse(JSON.stringify(once)))).toEqual(once);
  });

  it.each([
    ['the root', { ...small, nodez: [] }, ': unrecognized_keys'],
    ['a node', { ...small, nodes: [{ id: 'a', typeId: 'core.noop', input: {} }] }, 'nodes.0: unrecognized_keys'],
    [
      'a port',
      { ...small, nodes: [{ id: 'a', typeId: 'core.noop', inputs: { p: { type: 'static', value: 1, x: 1 } } }] },
      'nodes.0.inputs.p: unrecognized_keys',
    ],
    ['an edge', { ...small, edges: [{ id: 'e', sourceNodeId: 'a', targetNodeId: 'a', when: 1 }] }, 'edges.0: unrecognized_keys'],
    [
      'a condition',
      { ...small, edges: [{ id: 'e', sourceNodeId: 'a', targetNodeId: 'a', condition: { op: '=' } }] },
      'edges.0.condition: unrecognized_keys',
    ],
    ['a variable', { ...small, variables: [{ name: 'v', type: 'string', default: 1 }] }, 'variables.0: unrecognized_keys'],
    ['a trigger', { ...small, triggers: [{ id: 't', type: 'manual', cron: '*' }] }, 'triggers.0: unrecognized_keys'],
  ])('refuses members it does not know in %s', (_where, definition, issue) => {
    expect(refusal(definition)).toEqual([issue]);
  });

  it.each(['', ' ', 'a b', 'a/b', 'a#b', 'ä', 'x'.repeat(129), 'a\n'])('refuses %j as an id', (id) => {
    expect(refusal({ ...small, id })).not.toEqual([]);
    expect(refusal({ ...small, nodes: [{ id, typeId: 'core.noop' }] })).not.toEqual([]);
  });

  it.each(['a', 'A.b_c~d:e-9', 'x'.repeat(128)])('takes %j as an id', (id) => {
    expect(refusal({ ...small, id, nodes: [{ id, typeId: 'core.noop' }] })).toEqual([]);
  });

  it('has at least one node and at most a thousand', () => {
    const nodes = (count: number) => ({
      ...small,
      nodes: Array.from({ length: count }, (_, index) => ({ id: `n${index}`, typeId: 'core.noop' })),
    });
    expect(refusal(nodes(0))).toEqual(['nodes: too_small']);
    expect(refusal(nodes(MAX_NODES))).toEqual([]);
    expect(refusal(nodes(MAX_NODES + 1))).toEqual(['nodes: too_big']);
  });

  it.each(['core noop', 'Core.noop', '', '1core'])('refuses %j as a type of node', (typeId) => {
    expect(refusal({ ...small, nodes: [{ id: 'a', typeId }] })).not.toEqual([]);
  });
});

describe('the body that starts a run', () => {
  const accepts = (body: unknown) => CreateRunBody.safeParse(body).success;

  it('is closed', () => {
    expect(accepts({ workflowId: 'w' })).toBe(true);
    expect(accepts({ workflowId: 'w', workspaceId: 'x' })).toBe(false);
    expect(accepts({})).toBe(false);
  });

  it('passes unknown configurable keys through and holds the reserved ones to their type', () => {
    expect(CreateRunBody.parse({ workflowId: 'w', configurable: { model: 'x', recursionLimit: 5 } }).configurable).toEqual({
      model: 'x',
      recursionLimit: 5,
    });
    expect(accepts({ workflowId: 'w', configurable: { recursionLimit: '5' } })).toBe(false);
    expect(accepts({ workflowId: 'w', configurable: { runTimeoutMs: 0 } })).toBe(false);
  });

  it('bounds metadata: four levels, 8192 bytes', () => {
    const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) });
    expect(accepts({ workflowId: 'w', metadata: deep(4) })).toBe(true);
    expect(accepts({ workflowId: 'w', metadata: deep(5) })).toBe(false);
    expect(accepts({ workflowId: 'w', metadata: { a: 'x'.repeat(8192 - 8) } })).toBe(true);
    expect(accepts({ workflowId: 'w', metadata: { a: 'x'.repeat(8192 - 7) } })).toBe(false);
    expect(accepts({ workflowId: 'w', metadata: { a: 'ä'.repeat(4097) } })).toBe(false);
  });
});
