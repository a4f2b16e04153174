// What is measured: the workflows, and the same MCP requests for us and for the bare server.

export const NOOPS = {
  id: 'bench-noops',
  name: 'Three no-ops',
  nodes: ['one', 'two', 'three'].map((id) => ({ id, typeId: 'core.noop' })),
  edges: [
    { id: 'one-two', sourceNodeId: 'one', targetNodeId: 'two' },
    { id: 'two-three', sourceNodeId: 'two', targetNodeId: 'three' },
  ],
};

const TEXT = 'All about isthmuses, canals and the land bridges between them.';

/** A tool that says its argument again: published, and one node of work. */
export const ECHO = {
  id: 'bench-echo',
  name: 'Echo',
  variables: [{ name: 'text', type: 'string', required: true }],
  nodes: [
    {
      id: 'expose',
      typeId: 'core.openwop.mcp.expose-tool',
      config: {
        name: 'echo',
        description: 'Says it again',
        inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'], additionalProperties: false },
      },
    },
    { id: 'echo', typeId: 'core.identity', outputRole: 'primary', inputs: { text: { type: 'variable', variableName: 'text' } } },
  ],
  edges: [{ id: 'expose-echo', sourceNodeId: 'expose', targetNodeId: 'echo' }],
};

/** The tools of the list, as data: `toolSchema` in schemas of zod is what the bare server registers. */
export const LISTED = Array.from({ length: 50 }, (_, index) => ({
  name: `tool_${String(index + 1).padStart(2, '0')}`,
  description: `Looks something up in collection ${index + 1} and answers with what was found there.`,
}));

export const listedWorkflow = ({ name, description }) => ({
  id: `bench-${name}`,
  name,
  nodes: [
    {
      id: 'expose',
      typeId: 'core.openwop.mcp.expose-tool',
      config: {
        name,
        description,
        inputSchema: {
          type: 'object',
          properties: {
            query: { type: 'string', description: 'What to look for', minLength: 1, maxLength: 500 },
            limit: { type: 'integer', description: 'How many to answer with', minimum: 1, maximum: 100, default: 10 },
            order: { type: 'string', description: 'Which come first', enum: ['newest', 'oldest', 'best'] },
            tags: { type: 'array', description: 'Only with all of these', items: { type: 'string' } },
          },
          required: ['query'],
          additionalProperties: false,
        },
      },
    },
  ],
});

const REVISION = '2026-07-28';
const META = {
  'io.modelcontextprotocol/protocolVersion': REVISION,
  'io.modelcontextprotocol/clientInfo': { name: 'isthmus-bench', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

const request = (method, params, name) => ({
  headers: {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': REVISION,
    'mcp-method': method,
    ...(name && { 'mcp-name': name }),
  },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } }),
});

/** `expect` stands in every right answer. */
export const CALL = { ...request('tools/call', { name: 'echo', arguments: { text: TEXT } }, 'echo'), expect: TEXT };
export const LIST = { ...request('tools/list', {}), expect: LISTED.at(-1).name };
