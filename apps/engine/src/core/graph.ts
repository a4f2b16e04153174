import {
  type Edge,
  type PortValue,
  TRIGGER_RULES,
  type TriggerRule,
  type WorkflowDefinition,
  type WorkflowNode,
  WopError,
} from '@isthmus/protocol';
import { conditionProblem, expressionProblem } from './conditions.js';

/** A definition, indexed for running. */
export type Graph = {
  readonly definition: WorkflowDefinition;
  readonly nodes: ReadonlyMap<string, WorkflowNode>;
  readonly incoming: ReadonlyMap<string, readonly Edge[]>;
  readonly outgoing: ReadonlyMap<string, readonly Edge[]>;
  /** Rule of a target: that of its first edge by id when edges disagree. */
  readonly rules: ReadonlyMap<string, TriggerRule>;
};

const byId = (a: Edge, b: Edge): number => (a.id < b.id ? -1 : 1);

/**
 * Indexes a definition and refuses what could not run: doubled ids, edges and ports to nowhere, circles, conditions that do
 * not parse. @throws WopError `validation_error` with every problem and where it is
 */
export function compile(definition: WorkflowDefinition): Graph {
  const problems = [...doubled(definition), ...dangling(definition), ...unreadable(definition)];
  if (problems.length > 0) throw refused(problems);
  const nodes = new Map(definition.nodes.map((node) => [node.id, node]));
  const edges = [...definition.edges].sort(byId);
  const incoming = group(nodes, edges, ({ targetNodeId }) => targetNodeId);
  const outgoing = group(nodes, edges, ({ sourceNodeId }) => sourceNodeId);
  const circle = circleIn(nodes, incoming, outgoing);
  if (circle.length > 0)
    throw refused([
      { path: 'edges', message: `nodes ${circle.slice(0, 10).join(', ')} wait for each other in a circle; circles are not supported` },
    ]);
  const rules = new Map([...incoming].map(([id, into]) => [id, into[0]?.triggerRule ?? TRIGGER_RULES[0]]));
  return { definition, nodes, incoming, outgoing, rules };
}

type Problem = { readonly path: string; readonly message: string };

function refused(problems: readonly Problem[]): WopError {
  const [first] = problems;
  return new WopError('validation_error', `The workflow definition is not valid at "${first?.path}": ${first?.message}.`, {
    issues: problems.slice(0, 20),
  });
}

function doubled({ nodes, edges, variables }: WorkflowDefinition): Problem[] {
  const find = (ids: readonly string[], path: string): Problem[] =>
    ids.flatMap((id, index) => (ids.indexOf(id) < index ? [{ path: `${path}.${index}`, message: `"${id}" is there twice` }] : []));
  return [
    ...find(
      nodes.map(({ id }) => id),
      'nodes',
    ),
    ...find(
      edges.map(({ id }) => id),
      'edges',
    ),
    ...find(
      variables.map(({ name }) => name),
      'variables',
    ),
  ];
}

function dangling({ nodes, edges }: WorkflowDefinition): Problem[] {
  const ids = new Set(nodes.map(({ id }) => id));
  const missing = (id: string, path: string): Problem[] => (ids.has(id) ? [] : [{ path, message: `there is no node "${id}"` }]);
  return [
    ...edges.flatMap((edge, i) => [
      ...missing(edge.sourceNodeId, `edges.${i}.sourceNodeId`),
      ...missing(edge.targetNodeId, `edges.${i}.targetNodeId`),
    ]),
    ...nodes.flatMap((node, i) =>
      Object.entries(node.inputs).flatMap(([port, value]) =>
        value.type === 'connection' ? missing(value.nodeId, `nodes.${i}.inputs.${port}.nodeId`) : [],
      ),
    ),
  ];
}

function unreadable({ nodes, edges }: WorkflowDefinition): Problem[] {
  const port = (value: PortValue): string | undefined => (value.type === 'expression' ? expressionProblem(value.expression) : undefined);
  return [
    ...edges.flatMap((edge, i) => {
      const problem = edge.condition && conditionProblem(edge.condition);
      return problem ? [{ path: `edges.${i}.condition`, message: problem }] : [];
    }),
    ...nodes.flatMap((node, i) =>
      Object.entries(node.inputs).flatMap(([name, value]) => {
        const problem = port(value);
        return problem ? [{ path: `nodes.${i}.inputs.${name}`, message: problem }] : [];
      }),
    ),
  ];
}

function group(
  nodes: ReadonlyMap<string, WorkflowNode>,
  edges: readonly Edge[],
  key: (edge: Edge) => string,
): ReadonlyMap<string, readonly Edge[]> {
  const groups = new Map<string, Edge[]>([...nodes.keys()].map((id) => [id, []]));
  for (const edge of edges) groups.get(key(edge))?.push(edge);
  return groups;
}

/** Takes away nodes that wait for nobody until none is left; what stays waits for itself. */
function circleIn(nodes: ReadonlyMap<string, WorkflowNode>, incoming: Graph['incoming'], outgoing: Graph['outgoing']): string[] {
  const waits = new Map([...incoming].map(([id, edges]) => [id, edges.length]));
  const free = [...waits].filter(([, count]) => count === 0).map(([id]) => id);
  for (let id = free.pop(); id !== undefined; id = free.pop()) {
    waits.delete(id);
    for (const { targetNodeId } of outgoing.get(id) ?? []) {
      const left = (waits.get(targetNodeId) ?? 0) - 1;
      waits.set(targetNodeId, left);
      if (left === 0) free.push(targetNodeId);
    }
  }
  return [...nodes.keys()].filter((id) => waits.has(id));
}
