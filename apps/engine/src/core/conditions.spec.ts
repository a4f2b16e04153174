import { describe, expect, it } from '@jest/globals';
import type { Condition, Json } from '@isthmus/protocol';
import { conditionProblem, type Scope, same, test } from './conditions.js';
import { inTime } from './given.suite.js';

const scope: Scope = {
  status: 'completed',
  output: { action: 'reject', n: 5, list: [1, { a: [2] }], nested: { b: { c: 1, d: 2 } }, text: 'Hello, world', nothing: null, no: false },
  variables: { limit: 3 },
  inputs: { name: 'Ada' },
};
const verdict = (condition: Condition): boolean | string => {
  const found = test(condition, scope);
  return found.is === 'verdict' ? found.taken : found.message;
};

describe('a condition', () => {
  it.each<[Condition, boolean]>([
    // equals and notEquals compare deeply; without a type, a path compares and an expression is one.
    [{ left: 'output.action', right: 'reject' }, true],
    [{ left: 'output.action', right: 'accept' }, false],
    [{ type: 'equals', left: 'status', right: 'completed' }, true],
    [{ type: 'equals', left: 'output.n', right: 5 }, true],
    [{ type: 'equals', left: 'output.n', right: '5' }, false],
    [{ type: 'equals', left: 'output.nested.b', right: { d: 2, c: 1 } }, true],
    [{ type: 'equals', left: 'output.nested.b', right: { c: 1 } }, false],
    [{ type: 'equals', left: 'output.list', right: [1, { a: [2] }] }, true],
    [{ type: 'equals', left: 'output.nothing', right: null }, true],
    [{ type: 'equals', left: 'output.missing', right: null }, false],
    [{ type: 'notEquals', left: 'output.n', right: 5 }, false],
    [{ type: 'notEquals', left: 'output.missing', right: 5 }, true],
    [{ type: 'notEquals', left: 'inputs.name', right: 'Eve' }, true],
    // contains: part of a text, or member of a list.
    [{ type: 'contains', left: 'output.text', right: 'world' }, true],
    [{ type: 'contains', left: 'output.text', right: 'World' }, false],
    [{ type: 'contains', left: 'output.list', right: { a: [2] } }, true],
    [{ type: 'contains', left: 'output.list', right: 2 }, false],
    [{ type: 'contains', left: 'output.nested', right: 'b' }, false],
    [{ type: 'contains', left: 'output.missing', right: '' }, false],
    // regex: on texts as they are, on other values as JSON.
    [{ type: 'regex', left: 'output.text', right: '^Hel+o' }, true],
    [{ type: 'regex', left: 'output.text', right: '^world' }, false],
    [{ type: 'regex', left: 'output.n', right: '^5$' }, true],
    [{ type: 'regex', left: 'output.nested', right: '"c":1' }, true],
    [{ type: 'regex', left: 'output.missing', right: '.*' }, false],
    // expression: CEL over status, output, variables and inputs.
    [{ expression: 'output.n > variables.limit && inputs.name == "Ada"' }, true],
    [{ type: 'expression', expression: 'status == "failed"' }, false],
    [{ type: 'expression', expression: '!output.no' }, true],
  ])('%j is %s', (condition, taken) => {
    expect(conditionProblem(condition)).toBeUndefined();
    expect(verdict(condition)).toBe(taken);
  });

  it.each<[Condition, RegExp]>([
    [{ expression: 'output.missing > 1' }, /No such key/],
    [{ expression: 'nodes.a.x' }, /nodes/],
    [{ expression: 'output.n' }, /neither true nor false/],
    [{ expression: 'output.nothing' }, /neither true nor false/],
    [{ expression: 'output.text' }, /neither true nor false/],
    [{ type: 'contains', left: 'output.text', right: 'x'.repeat(1_001) }, /searched for/],
    [{ type: 'regex', left: 'output.text', right: '(' }, /./],
  ])('that cannot be evaluated is an error, never a silent no: %j', (condition, message) => {
    expect(verdict(condition)).toMatch(message);
  });

  it('ends in time on a text that a backtracking expression would not end on', () => {
    const hostile: Scope = { ...scope, output: `${'a'.repeat(100_000)}!` };
    inTime(2_000, () => expect(test({ type: 'regex', left: 'output', right: '(a+)+$' }, hostile)).toEqual({ is: 'verdict', taken: false }));
  });

  it.each(['output.constructor', 'output.__proto__', 'constructor.name', '__proto__', 'output.list.length.constructor'])(
    'sees own members only: %s leads nowhere',
    (left) => {
      expect(verdict({ type: 'notEquals', left, right: 'x' })).toBe(true);
      expect(verdict({ type: 'regex', left, right: '' })).toBe(false);
    },
  );

  it.each<[Condition, RegExp]>([
    [{}, /needs "left"/],
    [{ type: 'equals', right: 1 }, /needs "left"/],
    [{ type: 'equals', left: '', right: 1 }, /needs "left"/],
    [{ type: 'notEquals', left: 'status' }, /needs "right"/],
    [{ type: 'regex', left: 'status', right: 5 }, /must be a string/],
    [{ type: 'regex', left: 'status', right: '(?=x)' }, /does not parse/],
    [{ type: 'expression' }, /needs "expression"/],
    [{ expression: '' }, /needs "expression"/],
    [{ expression: '1 +' }, /does not parse/],
    [{ type: 'expression', expression: 'output.map(x, output.map(y, y))' }, /may not stand inside/],
  ])('that could never be evaluated is refused at registration: %j', (condition, problem) => {
    expect(conditionProblem(condition)).toMatch(problem);
  });
});

describe('two JSON values are the same', () => {
  it.each<[Json | undefined, Json | undefined, boolean]>([
    [1, 1, true],
    [null, null, true],
    [null, undefined, false],
    [null, {}, false],
    [[], {}, false],
    [[1, 2], [2, 1], false],
    [{ a: 1, b: [{ c: 2 }] }, { b: [{ c: 2 }], a: 1 }, true],
    [{ a: 1 }, { a: 1, b: 2 }, false],
    [{ toString: 1 }, { a: 1 }, false],
    [{ a: undefined as never }, { b: 1 }, false],
    ['1', 1, false],
    [false, 0, false],
  ])('%j and %j: %s', (a, b, expected) => {
    expect([same(a, b), same(b, a)]).toEqual([expected, expected]);
  });
});
