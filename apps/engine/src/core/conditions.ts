import type { Condition, Json } from '@isthmus/protocol';
import { at, evaluate, expressionProblem, firstLine, needle } from './expression.js';
import { matches, regexProblem } from './regex.js';

export { expressionProblem };

/** What a condition may look at when its source node has ended. */
export type Scope = { readonly status: string; readonly output: Json; readonly variables: Json; readonly inputs: Json };

type Kind = NonNullable<Condition['type']>;
type Test = (left: Json | undefined, right: Json, condition: Condition, scope: Scope) => boolean;

const TESTS: { readonly [K in Kind]: Test } = {
  equals: (left, right) => same(left, right),
  notEquals: (left, right) => !same(left, right),
  contains: (left, right) =>
    typeof left === 'string' ? left.includes(needle(String(right))) : Array.isArray(left) && left.some((item) => same(item, right)),
  regex: (left, right) => left !== undefined && matches(String(right), typeof left === 'string' ? left : JSON.stringify(left)),
  expression: (_left, _right, { expression }, scope) => {
    const value = evaluate(expression ?? '', scope);
    if (typeof value !== 'boolean') throw new Error('it yields neither true nor false');
    return value;
  },
};

/** An expression alone is an expression; anything else that says no type compares. */
const kindOf = (condition: Condition): Kind => condition.type ?? (condition.expression !== undefined ? 'expression' : 'equals');

/** Why a condition could never be evaluated, or undefined. */
export function conditionProblem(condition: Condition): string | undefined {
  const kind = kindOf(condition);
  if (kind === 'expression')
    return condition.expression ? expressionProblem(condition.expression) : 'a condition of type "expression" needs "expression"';
  if (!condition.left) return `a condition of type "${kind}" needs "left", a path such as status or output.approved`;
  if (condition.right === undefined) return `a condition of type "${kind}" needs "right"`;
  return kind === 'regex'
    ? typeof condition.right === 'string'
      ? regexProblem(condition.right)
      : '"right" of a regex must be a string'
    : undefined;
}

export type Verdict = { readonly is: 'verdict'; readonly taken: boolean } | { readonly is: 'error'; readonly message: string };

/** Is the edge taken? An expression that cannot be evaluated is an error of the definition, never a silent false. */
export function test(condition: Condition, scope: Scope): Verdict {
  try {
    const left = condition.left === undefined ? undefined : at(scope as unknown as Json, condition.left);
    return { is: 'verdict', taken: TESTS[kindOf(condition)](left, condition.right ?? null, condition, scope) };
  } catch (error) {
    return { is: 'error', message: firstLine(error) };
  }
}

/** Deep JSON equality; the order of members does not matter. */
export function same(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const left = Object.entries(a);
  return (
    left.length === Object.keys(b).length &&
    left.every(([key, value]) => Object.hasOwn(b, key) && same(value, (b as { [key: string]: Json })[key]))
  );
}
