import { type ASTNode, Environment } from '@marcbachmann/cel-js';
import type { Json } from '@isthmus/protocol';
import { matches } from './regex.js';
import { remember } from './remember.js';

/**
 * Expressions are CEL: no side effects, no loops but over lists that exist. Bounded so that a definition cannot take the
 * engine: size and depth here, list macros may not stand inside one another and may not go through other data at every step,
 * what is searched for is short, and regular expressions are ours (regex.ts).
 */
const CEL = new Environment({
  unlistedVariablesAreDyn: true,
  homogeneousAggregateLiterals: false,
  limits: { maxAstNodes: 1_000, maxDepth: 40, maxListElements: 1_000, maxMapEntries: 1_000, maxCallArguments: 32 },
})
  .registerFunction('string.matchesRe2(string): bool', (text: string, pattern: string) => matches(pattern, text))
  .registerFunction('needle(string): string', (text: string) => needle(text));

const MACROS = new Set(['map', 'filter', 'all', 'exists', 'exists_one']);
/** JavaScript looks for a text in time of both lengths multiplied, when both are periodic: 6 s for 100 KB in 200 KB. */
const SEARCHES = new Set(['contains', 'indexOf', 'lastIndexOf', 'split']);
const MAX_NEEDLE = 1_000;
/** Values in reach times what one step of a list macro may touch. */
const MAX_MACRO_COST = 100_000_000;
/** Members and characters that an expression may yield. */
const MAX_RESULT = 10_000_000;
/** A list macro: what stands in its body, and which other values its body names. */
type Macro = { readonly nodes: number; readonly paths: readonly string[] };
type Compiled = { readonly run: ReturnType<typeof CEL.parse>; readonly macros: readonly Macro[] };

const compiledExpressions = new Map<string, Compiled>();

/** A text to look for. @throws Error when it is too long */
export function needle(text: string): string {
  if (text.length > MAX_NEEDLE) throw new Error(`what is searched for may have ${MAX_NEEDLE} characters`);
  return text;
}

/** Why the expression cannot be used, or undefined. */
export function expressionProblem(expression: string): string | undefined {
  try {
    if (nestsMacros(compile(expression).run.ast, false))
      return 'a list macro (map, filter, all, exists, exists_one) may not stand inside another one';
    return undefined;
  } catch (error) {
    return `the expression does not parse: ${firstLine(error)}`;
  }
}

/** @throws Error when it cannot be evaluated: an unknown name, a wrong type, too much data */
export function evaluate(expression: string, scope: Readonly<Record<string, Json>>): Json {
  const { run, macros } = compile(expression);
  checkCost(macros, scope);
  return toJson(run(toCel(scope) as Record<string, unknown>));
}

const compile = (expression: string): Compiled =>
  remember(compiledExpressions, expression, () => {
    const run = CEL.parse(expression);
    const macros: Macro[] = [];
    prepare(run.ast, macros);
    return { run, macros };
  });

const isNode = (value: unknown): value is ASTNode => typeof value === 'object' && value !== null && 'op' in value;

/** Puts our functions in the place of the library's, which are not bounded, and notes the macros. */
function prepare(node: unknown, macros: Macro[]): void {
  if (Array.isArray(node)) for (const child of node) prepare(child, macros);
  if (!isNode(node)) return;
  prepare(node.args, macros);
  if (node.op !== 'rcall') return;
  const [name, , args] = node.args;
  // `matches` of the library runs on JavaScript's backtracking regular expressions.
  if (name === 'matches') (node.args as [string, ...unknown[]])[0] = 'matchesRe2';
  if (SEARCHES.has(name) && args[0]) args[0] = searching(args[0]);
  if (isMacro(node)) macros.push(macroOf(args));
}

function searching(node: ASTNode): ASTNode {
  const { ast } = CEL.parse('needle("")');
  (ast.args as [string, ASTNode[]])[1][0] = node;
  return ast;
}

const isMacro = ({ op, args }: ASTNode): boolean => op === 'rcall' && MACROS.has(args[0]) && args[2].length >= 2;

function macroOf([variable, ...body]: readonly ASTNode[]): Macro {
  const own = variable?.op === 'id' ? variable.args : '';
  const paths = new Set<string>();
  let nodes = 0;
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) for (const child of node) visit(child);
    if (!isNode(node)) return;
    nodes += 1;
    const path = pathOf(node);
    if (path === undefined) visit(node.args);
    else if (path.split('.')[0] !== own) paths.add(path);
  };
  visit(body);
  return { nodes, paths: [...paths] };
}

/** `variables.limit.high` of a chain of members; undefined for anything else. */
function pathOf(node: ASTNode): string | undefined {
  if (node.op === 'id') return node.args;
  if (node.op !== '.') return undefined;
  const [inner, name] = node.args;
  const path = pathOf(inner);
  return path === undefined ? undefined : `${path}.${name}`;
}

/** A macro takes a step for each member of a list; a step may go through every value that its body names. */
function checkCost(macros: readonly Macro[], scope: Readonly<Record<string, Json>>): void {
  if (macros.length === 0) return;
  const all = sizeOf(scope);
  for (const { nodes, paths } of macros) {
    const named = paths.reduce((sum, path) => sum + sizeOf(at(scope, path) ?? scope), 0);
    if (all * (nodes + named) > MAX_MACRO_COST) throw new Error('there is too much data for a list macro that looks at other values');
  }
}

/** Members and characters. */
const sizeOf = (value: Json): number =>
  typeof value === 'string'
    ? 1 + value.length
    : typeof value === 'object' && value !== null
      ? Object.values(value).reduce((sum: number, item: Json) => sum + sizeOf(item), 1)
      : 1;

function nestsMacros(node: unknown, inside: boolean): boolean {
  if (Array.isArray(node)) return node.some((child) => nestsMacros(child, inside));
  if (!isNode(node)) return false;
  const macro = isMacro(node);
  return (macro && inside) || nestsMacros(node.args, inside || macro);
}

/** The value at a dotted path; undefined where there is none. Own members only: names come from outside. */
export function at(value: Json, path: string): Json | undefined {
  return path.split('.').reduce<Json | undefined>((item, name) => {
    if (typeof item !== 'object' || item === null || !Object.hasOwn(item, name)) return undefined;
    return (item as { readonly [key: string]: Json })[name];
  }, value);
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
  let left = MAX_RESULT;
  const spend = (cost: number): void => {
    left -= cost;
    if (left < 0) throw new Error('the result is too large');
  };
  const convert = (item: unknown): Json => {
    spend(typeof item === 'string' ? 1 + item.length : 1);
    if (typeof item === 'bigint') return Number(item);
    if (typeof item === 'number') {
      if (Number.isFinite(item)) return item;
      throw new Error('the result is not a finite number');
    }
    if (item === null || typeof item === 'string' || typeof item === 'boolean') return item;
    if (Array.isArray(item)) return item.map(convert);
    if (item instanceof Map) return Object.fromEntries([...item].map(([key, member]) => [String(key), convert(member)]));
    if (typeof item === 'object' && Object.getPrototypeOf(item) === Object.prototype)
      return Object.fromEntries(Object.entries(item).map(([key, member]) => [key, convert(member)]));
    throw new Error('the result is not JSON');
  };
  return convert(value);
}

export const firstLine = (error: unknown): string =>
  (error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)).slice(0, 300);
