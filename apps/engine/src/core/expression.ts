import { type ASTNode, Environment } from '@marcbachmann/cel-js';
import type { Json } from '@isthmus/protocol';
import { matches } from './regex.js';
import { remember } from './remember.js';

/**
 * Expressions are CEL: no side effects, no loops but over lists that exist. Bounded so that a definition cannot take the
 * engine: size and depth here; list macros may not stand inside or behind one another, and names may not be bound (twenty
 * doublings are a million members); what is named is counted as often as it may be gone through; what is searched for is
 * short; regular expressions are ours (regex.ts).
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
/** Members and characters that an evaluation may go through; it takes a second or two then. */
const MAX_COST = 100_000_000;
/** Members and characters that an expression may yield. */
const MAX_RESULT = 10_000_000;

/** What is evaluated once for each member of a list, or, at the top, once: how much of it, and the values it names. */
type Body = { readonly own: string; nodes: number; readonly paths: string[] };
type Compiled = { readonly run: ReturnType<typeof CEL.parse>; readonly top: Body; readonly macros: readonly Body[] };

const compiled = new Map<string, Compiled>();

const compile = (expression: string): Compiled =>
  remember(compiled, expression, () => {
    const run = CEL.parse(expression);
    const top = { own: '', nodes: 0, paths: [] };
    const macros: Body[] = [];
    prepare(run.ast, top, macros);
    return { run, top, macros };
  });

/** Puts bounded functions in the place of the library's, and notes what evaluating costs. */
function prepare(node: unknown, body: Body, macros: Body[]): void {
  if (Array.isArray(node)) for (const child of node) prepare(child, body, macros);
  if (!isNode(node)) return;
  body.nodes += 1;
  const path = pathOf(node);
  if (path !== undefined) {
    if (path.split('.')[0] !== body.own) body.paths.push(path);
    return;
  }
  if (node.op !== 'rcall') {
    prepare(node.args, body, macros);
    return;
  }
  const [name, receiver, args] = node.args;
  prepare(receiver, body, macros);
  if (isMacro(node)) {
    const [variable, ...steps] = args;
    const inner: Body = { own: variable?.op === 'id' ? variable.args : '', nodes: 0, paths: [] };
    macros.push(inner);
    prepare(steps, inner, macros);
    return;
  }
  prepare(args, body, macros);
  // `matches` of the library runs on JavaScript's backtracking regular expressions.
  if (name === 'matches') (node.args as [string, ...unknown[]])[0] = 'matchesRe2';
  if (SEARCHES.has(name) && args[0]) args[0] = searching(args[0]);
}

function searching(node: ASTNode): ASTNode {
  const { ast } = CEL.parse('needle("")');
  (ast.args as [string, ASTNode[]])[1][0] = node;
  return ast;
}

const isNode = (value: unknown): value is ASTNode => typeof value === 'object' && value !== null && 'op' in value;
const isMacro = ({ op, args }: ASTNode): boolean => op === 'rcall' && MACROS.has(args[0]) && args[2].length >= 2;

/** `variables.limit.high` of a chain of members; undefined for anything else. */
function pathOf(node: ASTNode): string | undefined {
  if (node.op === 'id') return node.args;
  if (node.op !== '.') return undefined;
  const [inner, name] = node.args;
  const path = pathOf(inner);
  return path === undefined ? undefined : `${path}.${name}`;
}

/** A text to look for. @throws Error when it is too long */
export function needle(text: string): string {
  if (text.length > MAX_NEEDLE) throw new Error(`what is searched for may have ${MAX_NEEDLE} characters`);
  return text;
}

/** Why the expression cannot be used, or undefined. */
export function expressionProblem(expression: string): string | undefined {
  try {
    return shapeProblem(compile(expression).run.ast, false);
  } catch (error) {
    return `the expression does not parse: ${firstLine(error)}`;
  }
}

function shapeProblem(node: unknown, inMacro: boolean): string | undefined {
  if (Array.isArray(node)) return node.reduce<string | undefined>((found, child) => found ?? shapeProblem(child, inMacro), undefined);
  if (!isNode(node)) return undefined;
  if (node.op === 'rcall' && node.args[0] === 'bind') return 'cel.bind is not supported';
  const macro = isMacro(node);
  if (macro && inMacro) return 'a list macro (map, filter, all, exists, exists_one) may not stand inside or behind another one';
  return shapeProblem(node.args, inMacro || macro);
}

/** @throws Error when it cannot be evaluated: an unknown name, a wrong type, too much data */
export function evaluate(expression: string, scope: Readonly<Record<string, Json>>): Json {
  const { run, top, macros } = compile(expression);
  if (costOf(top, macros, scope) > MAX_COST) throw new Error('there is too much data for this expression');
  return toJson(run(toCel(scope) as Record<string, unknown>));
}

/** A macro takes a step for each member of a list, of which there are at most as many as there is data; a step may go through all it names. */
function costOf(top: Body, macros: readonly Body[], scope: Readonly<Record<string, Json>>): number {
  const sizes = new Map<string, number>();
  const sizeAt = (path: string): number => {
    const known = sizes.get(path) ?? sizeOf(at(scope, path) ?? scope);
    sizes.set(path, known);
    return known;
  };
  const once = ({ nodes, paths }: Body): number => paths.reduce((sum, path) => sum + sizeAt(path), nodes);
  const steps = macros.length > 0 ? sizeOf(scope) : 0;
  return macros.reduce((sum, body) => sum + steps * once(body), once(top));
}

/** Members and characters. */
const sizeOf = (value: Json): number =>
  typeof value === 'string'
    ? 1 + value.length
    : typeof value === 'object' && value !== null
      ? Object.values(value).reduce((sum: number, item: Json) => sum + sizeOf(item), 1)
      : 1;

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
