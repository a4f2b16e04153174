import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Host, startHost } from '../fake-host.suite.js';

let host: Host;
beforeAll(async () => {
  host = await startHost();
});
afterAll(() => host.close());

const NODES = [{ id: 'n', typeId: 'core.noop' }];
const send = async (method: string, path: string, body?: unknown) => {
  const response = await fetch(`${host.url}/v1/host/isthmus${path}`, {
    method,
    headers: host.as('primary', body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text, body: text ? (JSON.parse(text) as Record<string, unknown>) : undefined };
};

describe('registering a workflow', () => {
  it('is 201 when it is new and 200 when it is a new revision, with the id of the path', async () => {
    expect(await send('PUT', '/workflows/new', { name: 'w', nodes: NODES })).toMatchObject({
      status: 201,
      body: { workflowId: 'new', revision: 1 },
    });
    expect(await send('PUT', '/workflows/old.1', { id: 'old.1', name: 'w', nodes: NODES })).toMatchObject({
      status: 200,
      body: { workflowId: 'old.1' },
    });
  });

  it('refuses another id in the body', async () => {
    expect(await send('PUT', '/workflows/w', { id: 'v', name: 'w', nodes: NODES })).toMatchObject({
      status: 400,
      body: { error: 'validation_error' },
    });
  });

  it('says everything that is wrong with a definition, and where', async () => {
    const { status, body } = await send('PUT', '/workflows/w', { nodes: [{ id: 'a b', typeId: 'core.noop' }], edges: [{ id: 'e' }] });
    expect(status).toBe(400);
    const { issues } = (body as { details: { issues: readonly { path: string }[] } }).details;
    const paths = issues.map(({ path }) => path);
    expect(paths).toEqual(expect.arrayContaining(['name', 'nodes.0.id', 'edges.0.sourceNodeId', 'edges.0.targetNodeId']));
  });
});

describe('forgetting a remote server', () => {
  it('is 204 without a body, or 404 when there is none', async () => {
    expect(await send('DELETE', '/mounts/known')).toEqual({ status: 204, text: '', body: undefined });
    expect(await send('DELETE', '/mounts/unknown')).toMatchObject({ status: 404, body: { error: 'not_found' } });
  });
});
