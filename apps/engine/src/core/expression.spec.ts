import { describe, expect, it } from '@jest/globals';
import type { Json } from '@isthmus/protocol';
import { at, evaluate, expressionProblem } from './expression.js';
import { inTime } from './given.suite.js';

const scope = {
  inputs: { n: 3, name: 'Ada', ratio: 0.5, big: 9_007_199_254_740_992 },
  variables: { list: [1, 2, 3], text: 'abcabc', nothing: null, flag: true },
  nodes: { tool: { result: { score: 7, tags: ['a', 'b'] } } },
};

describe('an expression', () => {
  it.each<[string, Json]>([
    ['inputs.n + 1', 4],
    ['inputs.n / 2', 1],
    ['inputs.ratio * 2.0', 1],
    ['inputs.big', 9_007_199_254_740_992],
    ['inputs.name + "!"', 'Ada!'],
    ['nodes.tool.result.score > 5 && variables.flag', true],
    ['variables.nothing == null', true],
    ['variables.list.map(x, x * 2)', [2, 4, 6]],
    ['variables.list.map(x, x > 1, x + inputs.n)', [5, 6]],
    ['variables.list.exists(x, x == 2) ? "yes" : "no"', 'yes'],
    ['{"a": inputs.n, "b": [inputs.name]}', { a: 3, b: ['Ada'] }],
    ['has(inputs.missing) ? 1 : 2', 2],
    ['"b" in nodes.tool.result.tags', true],
    ['size(variables.list)', 3],
    ['variables.text.contains("ca") && variables.text.indexOf("c") == 2', true],
    ['variables.text.split("b")', ['a', 'ca', 'c']],
  ])('%s is %j', (expression, value) => {
    expect(expressionProblem(expression)).toBeUndefined();
    expect(evaluate(expression, scope)).toEqual(value);
  });

  it.each([
    ['an unknown name', 'other.n'],
    ['an unknown member', 'inputs.missing'],
    ['a wrong type', 'inputs.n + inputs.name'],
    ['a division by zero', 'inputs.n / 0'],
    ['a result that is no JSON', 'timestamp("2026-01-01T00:00:00Z")'],
    ['an infinite result', '1.0 / 0.0'],
    ['an infinite result inside of another', '{"a": [1.0 / 0.0]}'],
    ['the clock', 'now()'],
  ])('with %s is an error', (_what, expression) => {
    expect(() => evaluate(expression, scope)).toThrow();
  });

  it.each(['constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf'])('sees own members only: %s is nobody’s', (name) => {
    expect(() => evaluate(`inputs.${name}`, scope)).toThrow();
    expect(() => evaluate(`inputs["${name}"]`, scope)).toThrow();
    expect(() => evaluate(name, scope)).toThrow();
    expect(evaluate(`"${name}" in inputs`, scope)).toBe(false);
  });

  it.each(['1 +', '', 'a b', 'f(', "'unclosed"])('that does not parse is refused: %j', (expression) => {
    expect(expressionProblem(expression)).toMatch(/does not parse/);
  });

  it('that is too large or too deep is refused', () => {
    expect(expressionProblem(Array.from({ length: 600 }, () => '1').join('+'))).toMatch(/maxAstNodes/);
    expect(expressionProblem(`${'('.repeat(60)}1${')'.repeat(60)}`)).toMatch(/maxDepth/);
    expect(expressionProblem(`[${Array.from({ length: 1_001 }, () => '1').join(',')}]`)).toMatch(/max/);
  });

  it.each([
    'variables.list.map(x, variables.list.map(y, x * y))',
    'variables.list.filter(x, variables.list.exists(y, x == y))',
    'variables.list.all(x, [1].all(y, [2].all(z, true)))',
    'variables.list.map(x, {"a": [variables.list.filter(y, y > x)]})',
    'variables.list.map(x, x > 1, variables.list.exists_one(y, y == x))',
    'variables.list.map(x, [x, x]).map(y, [y, y])',
    '{"a": [1].map(x, x).size()}.a > 0 ? [[1].filter(x, [2].all(y, true))] : []',
  ])('that puts list macros inside or behind one another is refused: %s', (expression) => {
    expect(expressionProblem(expression)).toMatch(/may not stand inside/);
  });

  it('may use several list macros side by side', () => {
    expect(expressionProblem('variables.list.all(x, x > 0) && variables.list.exists(y, y > 2)')).toBeUndefined();
  });

  it('may not bind names: what is bound twenty times doubles twenty times', () => {
    const doubled = (name: string, depth: number): string =>
      Array.from({ length: depth }, (_, i) => i).reduceRight(
        (inner, i) => `cel.bind(${name}${i + 1}, [${name}${i}, ${name}${i}], ${inner})`,
        `${name}${depth}`,
      );
    expect(expressionProblem('cel.bind(x, inputs.n, x + x)')).toMatch(/not supported/);
    expect(expressionProblem(`cel.bind(a0, 1, ${doubled('a', 15)}) == cel.bind(b0, 1, ${doubled('b', 15)})`)).toMatch(/not supported/);
  });
});

describe('a regular expression in an expression', () => {
  const evil = `"${'a'.repeat(40)}!"`;
  it.each([
    `${evil}.matches("(a+)+$")`,
    `${evil} . matches("(a+)+$")`,
    `${evil}.matches // comment\n ("(a+)+$")`,
    `[${evil}].exists(x, x.matches("(a+)+$"))`,
    `[${evil}].map(x, x.matches("(a+)+$"))[0]`,
    `{"a": ${evil}.matches("(a+)+$")}.a`,
  ])('is RE2’s, however it is written: %s', (expression) => {
    inTime(2_000, () => expect(evaluate(expression, {})).toBe(false));
  });

  it('is not looked for in texts: they stay as they are', () => {
    expect(evaluate('"say x.matches(y)"', {})).toBe('say x.matches(y)');
    expect(evaluate('"a.matches(b)" == inputs.t', { inputs: { t: 'a.matches(b)' } })).toBe(true);
  });

  it('that does not parse is an error', () => {
    expect(() => evaluate('"x".matches("(")', {})).toThrow();
  });
});

describe('what an expression may cost', () => {
  const list = (length: number): Json[] => Array.from({ length }, (_, index) => 100_000 + index);

  it('does not grow with the square of a list', () => {
    const variables = { items: list(60_000), few: list(100) };
    for (const expression of [
      'variables.items.all(x, x in variables.items)',
      'variables.few.exists(x, false) || variables.items.all(x, x in variables.items)',
      'variables.items.all(x, variables.items == variables.items)',
      'variables.items.map(x, variables["items"])',
    ])
      inTime(2_000, () => expect(() => evaluate(expression, { variables })).toThrow(/too much data/));
  });

  it('leaves room for what people write', () => {
    const variables = { items: list(5_000).map((id) => ({ id, tags: ['a'] })), few: list(100), limit: { low: 100_005 } };
    expect(evaluate('variables.items.filter(x, x.id < variables.limit.low).map(y, y.id)', { variables })).toEqual(list(5));
    expect(evaluate('size(variables.items.filter(x, x.id in variables.few))', { variables })).toBe(100);
    expect(evaluate('variables.items.all(x, x.tags[0] == "a" && x.id > 0)', { variables })).toBe(true);
  });

  it('counts what is gone through as often as it is named', () => {
    const variables = { a: list(60_000), b: list(60_000) };
    expect(evaluate('variables.a == variables.b', { variables })).toBe(true);
    const often = Array.from({ length: 100 }, () => 'variables.a == variables.a').join(' && ');
    expect(evaluate(often, { variables: { a: list(100) } })).toBe(true);
    inTime(2_000, () => expect(() => evaluate(often, { variables: { a: list(600_000) } })).toThrow(/too much data/));
  });

  it('does not grow with the product of two texts', () => {
    const variables = { text: 'a'.repeat(190_000), part: `${'a'.repeat(47_000)}b${'a'.repeat(47_000)}` };
    for (const method of ['contains', 'indexOf', 'lastIndexOf', 'split'])
      inTime(2_000, () =>
        expect(() => evaluate(`size([variables.text.${method}(variables.part)])`, { variables })).toThrow(/searched for/),
      );
    const inMacro = () => evaluate('[variables.text].exists(x, x.contains(x + "b"))', { variables });
    inTime(2_000, () => expect(inMacro).toThrow(/searched for/));
  });

  it('does not grow a result beyond bounds', () => {
    const variables = { text: 'a'.repeat(380_000), items: list(1_000) };
    inTime(2_000, () =>
      expect(() => evaluate(Array.from({ length: 200 }, () => 'variables.text').join(' + '), { variables })).toThrow(/too large/),
    );
    inTime(2_000, () => expect(() => evaluate('variables.items.map(x, variables.text)', { variables })).toThrow());
  });
});

describe('a path', () => {
  const value = { output: { list: [{ a: 1 }], text: 'abc', nothing: null }, 'a.b': 1 };
  it.each<[string, Json | undefined]>([
    ['output.list.0.a', 1],
    ['output.nothing', null],
    ['output', value.output],
    ['output.missing', undefined],
    ['output.missing.deeper', undefined],
    ['output.nothing.deeper', undefined],
    ['output.text.length', undefined],
    ['output.constructor', undefined],
    ['output.__proto__', undefined],
    ['__proto__.toString', undefined],
    ['', undefined],
  ])('%j leads to %j', (path, expected) => {
    expect(at(value, path)).toEqual(expected);
  });
});
