import type { Json, JsonObject, PortValue, Variable, WorkflowDefinition, WorkflowNode } from '@isthmus/protocol';
import { channelValue } from './channels.js';
import { evaluate, firstLine } from './expression.js';
import type { Graph } from './graph.js';
import { contentOf } from './outputs.js';
import type { RunState, Stored } from './state.js';

/** Reads a value that may stand in the value store; the shell has loaded what a node can refer to. */
export type Read = (stored: Stored) => Json;

export type Resolved =
  | { readonly is: 'inputs'; readonly inputs: JsonObject; readonly taint: Taint }
  | { readonly is: 'error'; readonly code: 'variable_missing' | 'expression_failed'; readonly message: string };

/** What a value carries along from those it was made of. */
export type Taint = { readonly untrusted: boolean; readonly secret: boolean };
const CLEAN: Taint = { untrusted: false, secret: false };
const both = (a: Taint, b: Taint): Taint => ({ untrusted: a.untrusted || b.untrusted, secret: a.secret || b.secret });
const taintOf = (value: Stored | undefined): Taint =>
  value?.is === 'ref' ? { untrusted: value.untrusted, secret: value.secret === true } : CLEAN;

type Port = { readonly value: Json | undefined; readonly taint: Taint };

/** What a node gets: its ports, then what edges bring to ports it does not define itself. */
export function resolveInputs(graph: Graph, state: RunState, node: WorkflowNode, read: Read): Resolved {
  // Names of ports come from authors: none of them is the prototype.
  const inputs: Record<string, Json> = Object.create(null) as Record<string, Json>;
  let taint = CLEAN;
  for (const [name, port] of Object.entries(node.inputs)) {
    try {
      const { value, taint: carried } = portOf(port, state, read);
      taint = both(taint, carried);
      if (value !== undefined) inputs[name] = value;
      else if (!('optional' in port && port.optional))
        return {
          is: 'error',
          code: 'variable_missing',
          message: `Input "${name}" of node "${node.id}" refers to ${describe(port)}, which does not exist.`,
        };
    } catch (error) {
      return {
        is: 'error',
        code: 'expression_failed',
        message: `The expression of input "${name}" of node "${node.id}" could not be evaluated: ${firstLine(error)}`,
      };
    }
  }
  for (const edge of graph.incoming.get(node.id) ?? []) {
    if (edge.targetInput === undefined || Object.hasOwn(inputs, edge.targetInput) || state.edges.get(edge.id) === false) continue;
    const outputs = state.nodes.get(edge.sourceNodeId)?.outputs;
    if (!outputs) continue;
    const whole = read(outputs);
    const named = member(whole, edge.sourceOutput ?? 'output');
    const value = named === undefined && edge.sourceOutput === undefined ? whole : named;
    if (value === undefined) continue;
    inputs[edge.targetInput] = value;
    taint = both(taint, taintOf(outputs));
  }
  return { is: 'inputs', inputs, taint };
}

function portOf(port: PortValue, state: RunState, read: Read): Port {
  if (port.type === 'static') return { value: port.value, taint: CLEAN };
  if (port.type === 'variable') return stored(state.variables.get(port.variableName) ?? state.nodes.get(port.variableName)?.outputs, read);
  if (port.type === 'expression') return { value: evaluate(port.expression, scopeOf(state, read)), taint: taintOfAll(state) };
  const outputs = state.nodes.get(port.nodeId)?.outputs;
  const whole = stored(outputs, read);
  return { ...whole, value: whole.value === undefined || port.outputKey === '' ? whole.value : member(whole.value, port.outputKey) };
}

const stored = (value: Stored | undefined, read: Read): Port => ({ value: value && read(value), taint: taintOf(value) });

/** An expression may read anything, so what it yields carries what any value of the run carries. */
const taintOfAll = (state: RunState): Taint =>
  [...state.variables.values(), ...[...state.nodes.values()].map(({ outputs }) => outputs)].reduce<Taint>(
    (taint, value) => both(taint, taintOf(value)),
    CLEAN,
  );

const member = (value: Json, key: string): Json | undefined =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as { readonly [key: string]: Json })[key] : undefined;

const describe = (port: PortValue): string =>
  port.type === 'variable'
    ? `the variable "${port.variableName}"`
    : port.type === 'connection'
      ? `output "${port.outputKey}" of node "${port.nodeId}"`
      : 'a value';

/** What expressions and conditions see. */
export function scopeOf(
  state: RunState,
  read: Read,
): { inputs: JsonObject; variables: JsonObject; nodes: JsonObject; channels: JsonObject } {
  return {
    inputs: {
      ...state.inputs,
      ...Object.fromEntries(Object.entries(state.inputRefs).map(([name, ref]) => [name, read({ is: 'ref', ...ref })])),
    },
    variables: Object.fromEntries([...state.variables].map(([name, value]) => [name, read(value)])),
    channels: Object.fromEntries([...state.channels].map(([name, channel]) => [name, channelValue(channel)])),
    nodes: Object.fromEntries([...state.nodes].flatMap(([id, { outputs }]) => (outputs ? [[id, read(outputs)]] : []))),
  };
}

export const withoutReading: Read = contentOf;

const IS: { readonly [T in Variable['type']]: (value: Json) => boolean } = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  boolean: (value) => typeof value === 'boolean',
  array: (value) => Array.isArray(value),
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
};

/**
 * The variables a run starts with: defaults, then inputs of the same name; inputs without a declaration become untyped
 * variables. Answers what is wrong with the inputs, too: a required variable without value, a wrong type.
 */
export function seed(
  definition: WorkflowDefinition,
  given: JsonObject,
): { readonly inputs: JsonObject; readonly problems: readonly { path: string; message: string }[] } {
  const inputs: Record<string, Json> = {};
  const problems: { path: string; message: string }[] = [];
  for (const { name, type, required, defaultValue } of definition.variables) {
    const value = Object.hasOwn(given, name) ? given[name] : defaultValue;
    if (value === undefined) {
      if (required) problems.push({ path: `inputs.${name}`, message: `is required, a ${type}` });
    } else if (Object.hasOwn(given, name) && !IS[type](value))
      problems.push({ path: `inputs.${name}`, message: `must be of type ${type}` });
    else inputs[name] = value;
  }
  return { inputs: { ...given, ...inputs }, problems };
}
