import { type ASTNode, Environment } from '@marcbachmann/cel-js';
import type { Json } from '@isthmus/protocol';
import { RE2JS } from 're2js';

/**
 * Expressions are CEL: no side effects, no loops but over lists that exist. Bounded so that a definition cannot take the
 * engine: size and depth here, list macros may not stand inside one another (time stays linear in the data), and
 * regular expressions are RE2's, linear in the text.
 */
const CEL = new Environment({
  unlistedVariablesAreDyn: true,
  homogeneousAggregateLiterals: false,
  limits: { maxAstNodes: 1_000, maxDepth: 40, maxListElements: 1_000, maxMapEntries: 1_000, maxCallArguments: 32 },
}).registerFunction('string.matchesRe2(string): bool', (text: string, pattern: string) => matches(pattern, text));

const MACROS = new Set(['map', 'filter', 'all', 'exists', 'exists_one']);

/** Text that a regular expression is tried on, at most. */
const MAX_REGEX_TEXT = 100_000;
const compiledRegexes = new Map<string, RE2JS>();
const compiledExpressions = new Map<string, ReturnType<typeof CEL.parse>>();

/** Small and first-in first-out: definitions are few, and a miss costs microseconds. */
function remember<T>(cache: Map<string, T>, key: string, make: () => T): T {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const made = make();
  if (cache.size >= 1_000) cache.delete(cache.keys().next().value as string);
  cache.set(key, made);
  return made;
}

/** Does the pattern occur in the text? Linear time. @throws Error when the pattern does not parse */
export const matches = (pattern: string, text: string): boolean =>
  remember(compiledRegexes, pattern, () => RE2JS.compile(pattern))
    .matcher(text.slice(0, MAX_REGEX_TEXT))
    .find();

export function regexProblem(pattern: string): string | undefined {
  try {
    matches(pattern, '');
    return undefined;
  } catch {
    return 'the regular expression does not parse (RE2 syntax: no look-around, no back-references)';
  }
}

/** Why the expression cannot be used, or undefined. */
export function expressionProblem(expression: string): string | undefined {
  try {
    const { ast } = parse(expression);
    if (nestsMacros(ast, false)) return 'a list macro (map, filter, all, exists, exists_one) may not stand inside another one';
    return undefined;
  } catch (error) {
    return `the expression does not parse: ${firstLine(error)}`;
  }
}

/** @throws Error when it cannot be evaluated: an unknown name, a wrong type */
export function evaluate(expression: string, scope: Readonly<Record<string, Json>>): Json {
  return toJson(parse(expression)(toCel(scope) as Record<string, unknown>));
}

// `matches` of the library runs on JavaScript's backtracking regular expressions: ours takes its name.
const parse = (expression: string): ReturnType<typeof CEL.parse> =>
  remember(compiledExpressions, expression, () => CEL.parse(expression.replace(/\.matches\s*\(/g, '.matchesRe2(')));

function nestsMacros(node: unknown, inside: boolean): boolean {
  if (Array.isArray(node)) return node.some((child) => nestsMacros(child, inside));
  if (typeof node !== 'object' || node === null || !('op' in node)) return false;
  const { op, args } = node as ASTNode;
  const isMacro = op === 'rcall' && Array.isArray(args) && MACROS.has(String(args[0])) && Array.isArray(args[2]) && args[2].length >= 2;
  return (isMacro && inside) || nestsMacros(args as unknown, inside || isMacro);
}

/** JSON's whole numbers are CEL's int, so that `count + 1` means what it says. */
function toCel(value: Json): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(toCel);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toCel(item)]));
  return value;
}

function toJson(value: unknown): Json {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return value;
    throw new Error('the result is not a finite number');
  }
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (Array.isArray(value)) return value.map(toJson);
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [String(key), toJson(item)]));
  if (typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toJson(item)]));
  throw new Error('the result is not JSON');
}

export const firstLine = (error: unknown): string =>
  (error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)).slice(0, 300);
