import { describe, expect, it } from '@jest/globals';
import type { Json, JsonObject, WorkflowDefinition } from '@isthmus/protocol';
import { began, completed, definitionOf, fact, graphOf, skipped, started, stateOf } from './given.suite.js';
import { type Read, resolveInputs, scopeOf, seed } from './inputs.js';
import { contentOf } from './outputs.js';
import type { NewEvent, RunState } from './state.js';

/** What stands in the value store of these tests. */
const STORE: Readonly<Record<string, Json>> = { secret: { said: 'hi', list: [1] }, plain: { said: 'big' }, text: 'from a tool' };
const CLEAN = { untrusted: false, secret: false };
const read: Read = (stored) => (stored.is === 'ref' ? (STORE[stored.ref] as Json) : contentOf(stored));
const ref = (name: string, untrusted: boolean) => ({ ref: name, sha256: 'f'.repeat(64), bytes: 7, untrusted });
const kept = (nodeId: string, name: string, untrusted = true): NewEvent =>
  fact('node.completed', { nodeId, outputs: {} }, { facts: { value: ref(name, untrusted) } });

/** The inputs that node `n` gets from ports and edges, in a run where `a` and `b` may have come first. */
function resolve(ports: object, state: RunState, edges: readonly object[] = []) {
  const graph = graphOf(
    ['a', 'b', { id: 'n', inputs: ports }],
    edges.map((edge, index) => ({ id: `e${index}`, sourceNodeId: 'a', targetNodeId: 'n', ...edge })),
  );
  return resolveInputs(graph, state, graph.nodes.get('n') as never, read);
}
const after = (...events: readonly NewEvent[]): RunState => stateOf(started({ name: 'Ada', nothing: null }), ...events);
const a = (outputs: JsonObject): readonly NewEvent[] => [began('a'), completed('a', outputs)];

describe('a port', () => {
  it.each<[string, object, Json | undefined]>([
    ['static', { type: 'static', value: { x: [1] } }, { x: [1] }],
    ['static null', { type: 'static', value: null }, null],
    ['variable', { type: 'variable', variableName: 'name' }, 'Ada'],
    ['variable that is null', { type: 'variable', variableName: 'nothing' }, null],
    ['variable that is the result of a node', { type: 'variable', variableName: 'a' }, { x: 1, deep: { y: 2 }, none: null }],
    ['optional variable that is missing', { type: 'variable', variableName: 'other', optional: true }, undefined],
    ['connection', { type: 'connection', nodeId: 'a', outputKey: 'x' }, 1],
    ['connection to null', { type: 'connection', nodeId: 'a', outputKey: 'none' }, null],
    ['connection to all outputs', { type: 'connection', nodeId: 'a', outputKey: '' }, { x: 1, deep: { y: 2 }, none: null }],
    ['optional connection to what is missing', { type: 'connection', nodeId: 'a', outputKey: 'other', optional: true }, undefined],
    ['optional connection to a node that did not run', { type: 'connection', nodeId: 'b', outputKey: 'x', optional: true }, undefined],
    [
      'optional connection to what every object has',
      { type: 'connection', nodeId: 'a', outputKey: 'constructor', optional: true },
      undefined,
    ],
    ['expression', { type: 'expression', expression: 'inputs.name + nodes.a.deep.y.string()' }, undefined],
    ['expression over everything', { type: 'expression', expression: '[inputs.name, variables.name, nodes.a.deep.y]' }, ['Ada', 'Ada', 2]],
  ])('%s', (what, port, value) => {
    const resolved = resolve({ p: port }, after(...a({ x: 1, deep: { y: 2 }, none: null })));
    if (what === 'expression') expect(resolved).toMatchObject({ is: 'error', code: 'expression_failed' });
    else expect(resolved).toEqual({ is: 'inputs', inputs: value === undefined ? {} : { p: value }, taint: CLEAN });
  });

  it.each<[object, RegExp]>([
    [{ type: 'variable', variableName: 'other' }, /"p" of node "n" refers to the variable "other"/],
    [{ type: 'variable', variableName: 'toString' }, /the variable "toString"/],
    [{ type: 'connection', nodeId: 'a', outputKey: 'other' }, /output "other" of node "a"/],
    [{ type: 'connection', nodeId: 'b', outputKey: 'x' }, /output "x" of node "b"/],
  ])('%j that leads nowhere is an error that says where', (port, message) => {
    expect(resolve({ p: port }, after(...a({ x: 1 })))).toMatchObject({
      is: 'error',
      code: 'variable_missing',
      message: expect.stringMatching(message),
    });
  });

  it('whose expression cannot be evaluated is an error that says which and why', () => {
    expect(resolve({ p: { type: 'expression', expression: 'inputs.other' } }, after())).toMatchObject({
      is: 'error',
      code: 'expression_failed',
      message: expect.stringMatching(/"p" of node "n".*No such key/),
    });
  });
});

describe('an edge', () => {
  it('with a target input brings the output it names, the output called "output", or all of them', () => {
    const state = after(...a({ x: 1, output: 'main' }));
    expect(resolve({}, state, [{ targetInput: 'p', sourceOutput: 'x' }])).toMatchObject({ inputs: { p: 1 } });
    expect(resolve({}, state, [{ targetInput: 'p' }])).toMatchObject({ inputs: { p: 'main' } });
    expect(resolve({}, after(...a({ x: 1 })), [{ targetInput: 'p' }])).toMatchObject({ inputs: { p: { x: 1 } } });
    expect(resolve({}, state, [{}])).toEqual({ is: 'inputs', inputs: {}, taint: CLEAN });
  });

  it('brings null where the output is null', () => {
    const state = after(...a({ x: null, output: null }));
    expect(resolve({}, state, [{ targetInput: 'p', sourceOutput: 'x' }])).toMatchObject({ inputs: { p: null } });
    expect(resolve({}, state, [{ targetInput: 'p' }])).toMatchObject({ inputs: { p: null } });
  });

  it('brings nothing that is not there, was not taken, or that a port defines itself', () => {
    const nothing = { is: 'inputs', inputs: {}, taint: CLEAN };
    expect(resolve({}, after(...a({ x: 1 })), [{ targetInput: 'p', sourceOutput: 'other' }])).toEqual(nothing);
    const untaken = after(began('a'), completed('a', { x: 1 }, { e0: false }));
    expect(resolve({}, untaken, [{ targetInput: 'p', sourceOutput: 'x' }])).toEqual(nothing);
    expect(resolve({}, after(skipped('a')), [{ targetInput: 'p' }])).toEqual(nothing);
    const own = { p: { type: 'static', value: 'own' } };
    expect(resolve(own, after(...a({ x: 1 })), [{ targetInput: 'p', sourceOutput: 'x' }])).toMatchObject({ inputs: { p: 'own' } });
  });

  it('may bring to a port of any name, as a port of its own', () => {
    const resolved = resolve({}, after(...a({ x: { polluted: 1 } })), [{ targetInput: '__proto__', sourceOutput: 'x' }]);
    const inputs = resolved.is === 'inputs' ? resolved.inputs : {};
    expect(Object.keys(inputs)).toEqual(['__proto__']);
    expect('polluted' in inputs).toBe(false);
  });
});

describe('what a node gets is untrusted', () => {
  const tainted = after(began('a'), kept('a', 'secret'));
  it.each<[string, object, readonly object[], RunState, boolean]>([
    ['through a connection', { p: { type: 'connection', nodeId: 'a', outputKey: 'said' } }, [], tainted, true],
    ['through a variable that names the node', { p: { type: 'variable', variableName: 'a' } }, [], tainted, true],
    [
      'through a variable',
      { p: { type: 'variable', variableName: 'v' } },
      [],
      after(fact('variable.changed', { name: 'v', next: {} }, { facts: { value: ref('text', true) } })),
      true,
    ],
    ['through an edge', {}, [{ targetInput: 'p', sourceOutput: 'said' }], tainted, true],
    ['through any expression, since it may read everything', { p: { type: 'expression', expression: '1 + 1' } }, [], tainted, true],
    ['never when it is static', { p: { type: 'static', value: 1 } }, [], tainted, false],
    ['not when it comes from elsewhere', { p: { type: 'variable', variableName: 'name' } }, [], tainted, false],
    [
      'not when it is only large',
      { p: { type: 'connection', nodeId: 'a', outputKey: 'said' } },
      [],
      after(began('a'), kept('a', 'plain', false)),
      false,
    ],
    ['not through an edge that brings nothing', {}, [{}], tainted, false],
  ])('%s', (_how, ports, edges, state, untrusted) => {
    expect(resolve(ports, state, edges)).toMatchObject({ is: 'inputs', taint: { untrusted, secret: false } });
  });

  it('and secret when what it comes from is', () => {
    const state = after(
      began('a'),
      fact('node.completed', { nodeId: 'a', outputs: {} }, { facts: { value: { ...ref('plain', false), secret: true } } }),
    );
    const port = { p: { type: 'connection', nodeId: 'a', outputKey: 'said' } };
    expect(resolve(port, state)).toMatchObject({ inputs: { p: 'big' }, taint: { untrusted: false, secret: true } });
  });

  it('and is the value itself, read from the store', () => {
    expect(resolve({ p: { type: 'connection', nodeId: 'a', outputKey: 'said' } }, tainted)).toMatchObject({ inputs: { p: 'hi' } });
  });
});

describe('what expressions see', () => {
  it('is inputs, variables and results of nodes that have any', () => {
    const state = after(began('a'), kept('a', 'secret'), skipped('b'), fact('variable.changed', { name: 'name', next: 'Eve' }));
    expect(scopeOf(state, read)).toEqual({
      inputs: { name: 'Ada', nothing: null },
      variables: { name: 'Eve', nothing: null },
      nodes: { a: STORE['secret'] },
      channels: {},
    });
  });
});

describe('the variables a run starts with', () => {
  const variables = (...list: object[]): WorkflowDefinition => definitionOf(['a'], [], { variables: list });
  it('are defaults, then inputs of the same name, then inputs nobody declared', () => {
    const definition = variables(
      { name: 'n', type: 'number', defaultValue: 1 },
      { name: 's', type: 'string', defaultValue: 'x' },
      { name: 'o', type: 'object' },
    );
    expect(seed(definition, { n: 2, extra: [1] })).toEqual({ inputs: { n: 2, s: 'x', extra: [1] }, problems: [] });
  });

  it.each<[string, Json, boolean]>([
    ['string', 'x', true],
    ['string', 1, false],
    ['number', 0.5, true],
    ['number', '1', false],
    ['boolean', false, true],
    ['boolean', 0, false],
    ['object', {}, true],
    ['object', [], false],
    ['object', null, false],
    ['array', [], true],
    ['array', {}, false],
  ])('of type %s may be %j: %s', (type, value, allowed) => {
    const { problems } = seed(variables({ name: 'v', type }), { v: value });
    expect(problems.map(({ path }) => path)).toEqual(allowed ? [] : ['inputs.v']);
  });

  it('must be there when they are required and have no default', () => {
    expect(seed(variables({ name: 'v', type: 'string', required: true }), {}).problems).toEqual([
      { path: 'inputs.v', message: 'is required, a string' },
    ]);
    expect(seed(variables({ name: 'v', type: 'string', required: true, defaultValue: 'x' }), {}).problems).toEqual([]);
    expect(seed(variables({ name: 'toString', type: 'string', required: true }), {}).problems).toHaveLength(1);
  });

  it('are all told at once when they are wrong', () => {
    expect(seed(variables({ name: 'v', type: 'string', required: true }, { name: 'w', type: 'number' }), { w: 'x' }).problems).toHaveLength(
      2,
    );
  });
});
