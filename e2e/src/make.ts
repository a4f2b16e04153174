/** Small workflows, as their authors would write them. */
type Node = {
  readonly id: string;
  readonly typeId: string;
  readonly config?: object;
  readonly inputs?: object;
  readonly outputRole?: string;
};

export const node = (id: string, typeId: string, config: object = {}, rest: Omit<Node, 'id' | 'typeId' | 'config'> = {}): Node => ({
  id,
  typeId,
  config,
  ...rest,
});

/** A workflow whose nodes follow one another. */
export const chain = (id: string, nodes: readonly Node[], rest: object = {}) => ({
  id,
  name: id,
  nodes,
  edges: nodes.slice(1).map((target, at) => ({ id: `e${at}`, sourceNodeId: nodes[at]?.id, targetNodeId: target.id })),
  ...rest,
});

export const noop = (id: string): Node => node(id, 'core.noop');
export const gate = (id = 'gate', config: object = {}, rest = {}): Node =>
  node(id, 'core.approvalGate', { title: 'May it go on?', ...config }, rest);
export const delay = (delayMs: number, id = 'delay'): Node => node(id, 'core.delay', { delayMs });

/** Hands the run's input `name` on. */
export const echo = (name: string, id = 'echo'): Node =>
  node(id, 'core.identity', {}, { inputs: { [name]: { type: 'variable', variableName: name } }, outputRole: 'primary' });

export const tool = (name: string, properties: object = {}, rest: object = {}): Node =>
  node('expose', 'core.openwop.mcp.expose-tool', {
    name,
    description: `The tool ${name}.`,
    inputSchema: { type: 'object', properties, additionalProperties: false, ...rest },
  });

/** Calls a tool of a remote server with arguments that are made by CEL. */
export const call = (serverId: string, toolName: string, args = '{}', id = 'call'): Node =>
  node(
    id,
    'core.openwop.mcp.invoke-tool',
    { serverId, toolName },
    { inputs: { args: { type: 'expression', expression: args } }, outputRole: 'primary' },
  );

export const text = (name: string) => ({ name, type: 'string', required: true });
