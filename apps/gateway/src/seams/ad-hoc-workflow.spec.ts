import { describe, expect, it } from '@jest/globals';
import { adHocWorkflow } from './ad-hoc-workflow.js';

const invalid = expect.objectContaining({ code: 'validation_error' });

describe('a workflow as suites send it', () => {
  const asSent = {
    workflowId: 'mcp.mrtr.tool_1',
    nodes: [
      { nodeId: 'expose', typeId: 'core.openwop.mcp.expose-tool', config: { name: 't' } },
      { nodeId: 'ask', typeId: 'core.openwop.mcp.handle-elicitation', config: {} },
    ],
    edges: [{ edgeId: 'expose-ask', sourceNodeId: 'expose', targetNodeId: 'ask' }],
  };

  it('becomes the document it means', () => {
    expect(adHocWorkflow(asSent)).toMatchObject({
      id: 'mcp.mrtr.tool_1',
      name: 'mcp.mrtr.tool_1',
      nodes: [{ id: 'expose' }, { id: 'ask' }],
      edges: [{ id: 'expose-ask', sourceNodeId: 'expose', targetNodeId: 'ask' }],
    });
  });

  it('may be wrapped, and may be the document itself', () => {
    const document = adHocWorkflow(asSent);
    expect(adHocWorkflow({ definition: asSent })).toEqual(document);
    expect(adHocWorkflow(document)).toEqual(document);
    expect(adHocWorkflow({ definition: document })).toEqual(document);
  });

  it('has the id of the document where both stand', () => {
    const node = { id: 'mine', nodeId: 'other', typeId: 'core.noop' };
    expect(adHocWorkflow({ id: 'mine', workflowId: 'other', nodes: [node] })).toMatchObject({ id: 'mine', nodes: [{ id: 'mine' }] });
  });

  it.each([
    ['an edge of another form', { ...asSent, edges: [{ from: 'expose', to: 'ask' }] }],
    ['no nodes', { workflowId: 'w' }],
    ['no id', { nodes: asSent.nodes }],
    ['a node that is none', { ...asSent, nodes: [null, 'x', 7] }],
    ['an id of another grammar', { ...asSent, workflowId: 'a b' }],
    ['members nobody knows', { ...asSent, surprise: true }],
    ['an empty wrapper', { definition: {} }],
  ])('is refused with %s', (_, body) => {
    expect(() => adHocWorkflow(body)).toThrow(invalid);
  });
});
