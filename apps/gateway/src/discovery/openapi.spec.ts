import { ROUTES } from '@isthmus/protocol';
import { describe, expect, it } from '@jest/globals';
import { openApi } from './openapi.js';

type Operation = {
  operationId: string;
  security?: unknown[];
  parameters?: { name: string; in: string; required: boolean }[];
  requestBody?: { required: boolean; content: Record<string, { schema: object }> };
  responses: Record<string, object>;
};
const document = JSON.parse(JSON.stringify(openApi('https://wop.example.com'))) as {
  openapi: string;
  servers: { url: string }[];
  paths: Record<string, Record<string, Operation>>;
};
const operation = (path: string, method: string): Operation => document.paths[path]?.[method] as Operation;

describe('the OpenAPI document', () => {
  it('is 3.1 and names the public address', () => {
    expect(document.openapi).toMatch(/^3\.[1-9]/);
    expect(document.servers).toEqual([{ url: 'https://wop.example.com' }]);
  });

  it('has every route under its own spelling', () => {
    for (const route of Object.values(ROUTES))
      expect(operation(route.path, route.method.toLowerCase()).operationId).toBe(route.operationId);
  });

  it('documents the envelope for every status a route refuses with', () => {
    expect(Object.keys(operation('/v1/runs', 'post').responses)).toEqual(['201', '400', '401', '403', '409', '413', '415', '429', '503']);
    expect(Object.keys(operation('/v1/runs/{runId}', 'get').responses)).toEqual(['200', '304', '400', '401', '403', '404', '429', '503']);
    expect(Object.keys(operation('/v1/runs/{runId}:fork', 'post').responses)).toEqual(expect.arrayContaining(['201', '409', '410', '422']));
    expect(Object.keys(operation('/v1/interrupts/{token}', 'post').responses)).not.toContain('401');
  });

  it('asks for a credential everywhere but where none is needed', () => {
    expect(operation('/.well-known/openwop', 'get').security).toEqual([]);
    expect(operation('/v1/runs', 'post').security).toBeUndefined();
  });

  it('says which parameters and bodies are needed', () => {
    const poll = operation('/v1/runs/{runId}/events/poll', 'get').parameters;
    expect(poll).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ name: 'runId', in: 'path', required: true }),
        expect.objectContaining({ name: 'lastSequence', in: 'query', required: false }),
      ]),
    );
    expect(operation('/v1/runs', 'post').requestBody).toMatchObject({
      required: true,
      content: { 'application/json': { schema: { type: 'object', additionalProperties: false, required: ['workflowId'] } } },
    });
    expect(operation('/v1/runs/{runId}/cancel', 'post').requestBody).toMatchObject({ required: false });
    expect(operation('/v1/runs:bulk-cancel', 'post').requestBody).toMatchObject({
      content: { 'application/json': { schema: { properties: { runIds: { type: 'array', minItems: 1, maxItems: 100 } } } } },
    });
    expect(operation('/v1/runs', 'post').parameters).toEqual([expect.objectContaining({ name: 'Idempotency-Key', in: 'header' })]);
  });
});
