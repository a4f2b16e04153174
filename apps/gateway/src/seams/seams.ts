import { isRunId, JsonObject, type Route } from '@isthmus/protocol';
import { z } from 'zod';

/** Where suites look for the MCP mount of a host that does not say. With seams on it is the mount itself, under another name. */
export const MCP_ALIAS = '/v1/host/sample/mcp';

const seam = (method: 'GET' | 'POST', path: string, summary: string) => ({
  method,
  path: `/v1/host/sample${path}`,
  operationId: path,
  summary,
  // A credential, and then the scopes of the contracts that are asked. (spec/seams.md §1)
  access: [],
  success: 200 as const,
  holds: 'nothing' as const,
});
const text = z.string().min(1).max(1_000);

/**
 * Endpoints through which a black-box suite drives what it could not reach otherwise. Not a part of the interface: absent from the
 * route table, from OpenAPI, and from a host that was not started with OPENWOP_TEST_SEAM_ENABLED=true.
 */
export const SEAMS = {
  workflows: { ...seam('POST', '/workflows', 'Register a workflow'), body: z.looseObject({}) },
  mcpInvoke: {
    ...seam('POST', '/mcp/invoke', 'Call a tool as an MCP client'),
    body: z.strictObject({
      serverUrl: z.url({ protocol: /^https?$/ }).max(2_048),
      requestVersion: z
        .string()
        .regex(/^\d{4}-\d{2}-\d{2}$/)
        .optional(),
      tool: z.string().min(1).max(256).default('echo'),
      arguments: JsonObject.optional(),
      /** What is declared is what production declares; a suite may say that it expects it. */
      clientCapabilities: JsonObject.optional(),
      elicitationAnswer: JsonObject.optional(),
      scenario: z.enum(['extension-asserts-authority']).optional(),
    }),
  },
  concurrentClaim: {
    ...seam('POST', '/test/idempotency/concurrent-claim', 'Claim one effect from several executors at once'),
    body: z.strictObject({ executors: z.int().min(2).max(32) }),
  },
  toolHooks: {
    ...seam('POST', '/toolhooks/invoke', 'What a tool call leaves in the log'),
    body: z.strictObject({
      toolName: z.string().min(1).max(256),
      args: JsonObject.default({}),
      principal: text.optional(),
      requiredScopes: z.array(text).max(100).optional(),
      simulateToolError: z.boolean().optional(),
      simulateRateLimitExhausted: z.boolean().optional(),
    }),
  },
  ownedRun: seam('GET', '/identity/owned-run', 'A run of the asker'),
  crossWorkspaceRead: {
    ...seam('POST', '/identity/cross-workspace-read', 'Read a run of another workspace'),
    body: z.strictObject({}).optional(),
  },
  runEvents: {
    ...seam('GET', '/test/runs/{runId}/events', 'The log of a run, filtered'),
    params: z.strictObject({ runId: z.string().refine(isRunId) }),
    query: z.looseObject({ type: text.optional(), correlationId: text.optional(), causationId: text.optional(), nodeId: text.optional() }),
    holds: 'tenant' as const,
  },
} satisfies Record<string, Route>;
