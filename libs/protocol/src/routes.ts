import { z } from 'zod';
import { MountSpec } from './contracts/mcp-client.js';
import { CreateWebhookBody } from './contracts/webhooks.js';
import { ServerId, NodeId, RunId, WorkflowId } from './ids.js';
import { Json } from './json.js';
import { Configurable, CreateRunBody, DRAIN_POLICIES, MAX_BULK_CANCEL, RunStatus } from './runs.js';
import type { Scope } from './scopes.js';

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** One REST route. Path templates are spelt as OpenAPI has them (wire §4.1). */
export type Route = {
  readonly method: Method;
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  /** `public`: no credential. Else all scopes are needed. */
  readonly access: 'public' | readonly Scope[];
  /** Status of success. */
  readonly success: 200 | 201 | 202 | 204;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** Honours `Idempotency-Key`. */
  readonly idempotent?: true;
  /** `tenant`: names a thing of one tenant, so the wrong tenant must not find it. The generated test asks all of these. */
  readonly holds: 'tenant' | 'nothing';
};

const runParams = z.strictObject({ runId: z.string().min(1).max(128) });
const integer = (name: string) =>
  z
    .string()
    .regex(/^(0|[1-9][0-9]{0,9})$/, `${name} must be a non-negative integer`)
    .transform(Number);

const limit = (max: number) =>
  integer('limit')
    .refine((value) => value >= 1 && value <= max, `must be 1 to ${max}`)
    .optional();

export const ROUTES = {
  discovery: {
    method: 'GET',
    path: '/.well-known/openwop',
    operationId: 'getDiscovery',
    summary: 'What this host does',
    access: 'public',
    success: 200,
    holds: 'nothing',
  },
  openapi: {
    method: 'GET',
    path: '/v1/openapi.json',
    operationId: 'getOpenApi',
    summary: 'This interface, as OpenAPI',
    access: 'public',
    success: 200,
    holds: 'nothing',
  },

  getWorkflow: {
    method: 'GET',
    path: '/v1/workflows/{workflowId}',
    operationId: 'getWorkflow',
    summary: 'A workflow definition, as it was registered',
    access: ['manifest:read'],
    success: 200,
    params: z.strictObject({ workflowId: WorkflowId }),
    holds: 'tenant',
  },
  createRun: {
    method: 'POST',
    path: '/v1/runs',
    operationId: 'createRun',
    summary: 'Start a run of a workflow',
    access: ['runs:create'],
    success: 201,
    body: CreateRunBody,
    idempotent: true,
    holds: 'nothing',
  },
  getRun: {
    method: 'GET',
    path: '/v1/runs/{runId}',
    operationId: 'getRun',
    summary: 'Where a run stands',
    access: ['runs:read'],
    success: 200,
    params: runParams,
    holds: 'tenant',
  },
  streamEvents: {
    method: 'GET',
    path: '/v1/runs/{runId}/events',
    operationId: 'streamRunEvents',
    summary: "A run's events, as a stream (SSE) or, by Accept, as JSON",
    access: ['runs:read'],
    success: 200,
    params: runParams,
    query: z.looseObject({
      streamMode: z.string().max(200).optional(),
      /** How long events are gathered into one frame; 0 sends each by itself. (stream-modes.md, aggregation hint) */
      bufferMs: integer('bufferMs')
        .refine((value) => value <= 5_000, 'must be 0 to 5000 milliseconds')
        .optional(),
    }),
    holds: 'tenant',
  },
  pollEvents: {
    method: 'GET',
    path: '/v1/runs/{runId}/events/poll',
    operationId: 'pollRunEvents',
    summary: "A run's events after a sequence, waiting for news",
    access: ['runs:read'],
    success: 200,
    params: runParams,
    query: z.looseObject({
      lastSequence: integer('lastSequence').optional(),
      since: integer('since').optional(),
      timeout: integer('timeout')
        .refine((value) => value >= 1 && value <= 60, 'must be 1 to 60 seconds')
        .optional(),
    }),
    holds: 'tenant',
  },
  cancelRun: {
    method: 'POST',
    path: '/v1/runs/{runId}/cancel',
    operationId: 'cancelRun',
    summary: 'Cancel a run',
    access: ['runs:cancel'],
    success: 200,
    params: runParams,
    body: z.strictObject({ reason: z.string().max(512).optional() }).optional(),
    idempotent: true,
    holds: 'tenant',
  },
  resolveInterrupt: {
    method: 'POST',
    path: '/v1/runs/{runId}/interrupts/{nodeId}',
    operationId: 'resolveInterrupt',
    summary: 'Answer the interrupt a node waits for',
    access: ['approvals:respond'],
    success: 200,
    params: runParams.extend({ nodeId: NodeId }),
    body: z.strictObject({ resumeValue: Json }),
    idempotent: true,
    holds: 'tenant',
  },

  bulkCancelRuns: {
    method: 'POST',
    path: '/v1/runs:bulk-cancel',
    operationId: 'bulkCancelRuns',
    summary: 'Cancel up to 100 runs',
    access: ['runs:cancel'],
    success: 200,
    // The cap is documented here and held by the handler, whose refusal names it. (wire §4.5: details.maxRunIds)
    body: z.strictObject({
      runIds: z.array(z.string().min(1).max(128)).min(1).meta({ maxItems: MAX_BULK_CANCEL }),
      reason: z.string().max(512).optional(),
    }),
    idempotent: true,
    holds: 'nothing',
  },
  pauseRun: {
    method: 'POST',
    path: '/v1/runs/{runId}:pause',
    operationId: 'pauseRun',
    summary: 'Begin no more nodes',
    access: ['runs:cancel'],
    success: 202,
    params: runParams,
    body: z.strictObject({ reason: z.string().max(512).optional(), drainPolicy: z.enum(DRAIN_POLICIES).optional() }).optional(),
    idempotent: true,
    holds: 'tenant',
  },
  resumeRun: {
    method: 'POST',
    path: '/v1/runs/{runId}:resume',
    operationId: 'resumeRun',
    summary: 'Go on after a pause',
    access: ['runs:cancel'],
    success: 202,
    params: runParams,
    body: z.strictObject({ reason: z.string().max(512).optional() }).optional(),
    idempotent: true,
    holds: 'tenant',
  },
  forkRun: {
    method: 'POST',
    path: '/v1/runs/{runId}:fork',
    operationId: 'forkRun',
    summary: 'A new run from a prefix of this one: replayed, or continued differently',
    access: ['runs:create', 'runs:read'],
    success: 201,
    params: runParams,
    body: z.strictObject({
      mode: z.enum(['replay', 'branch']),
      fromSeq: z.int().min(0).optional(),
      runOptionsOverlay: z
        .strictObject({ configurable: Configurable.optional(), tags: CreateRunBody.shape.tags, metadata: CreateRunBody.shape.metadata })
        .optional(),
    }),
    idempotent: true,
    holds: 'tenant',
  },
  diffRuns: {
    method: 'GET',
    path: '/v1/runs/{runId}:diff',
    operationId: 'diffRuns',
    summary: 'Where the logs of two runs part',
    access: ['runs:read'],
    success: 200,
    params: runParams,
    query: z.looseObject({ against: z.string().min(1).max(128) }),
    holds: 'tenant',
  },
  debugBundle: {
    method: 'GET',
    path: '/v1/runs/{runId}/debug-bundle',
    operationId: 'getDebugBundle',
    summary: 'A run for a bug report: redacted and bounded',
    access: ['runs:read'],
    success: 200,
    params: runParams,
    holds: 'tenant',
  },
  inspectInterrupt: {
    method: 'GET',
    path: '/v1/interrupts/{token}',
    operationId: 'inspectInterrupt',
    summary: 'What waits behind a signed token',
    access: 'public',
    success: 200,
    params: z.strictObject({ token: z.string().min(1).max(4_096) }),
    holds: 'nothing',
  },
  resolveInterruptByToken: {
    method: 'POST',
    path: '/v1/interrupts/{token}',
    operationId: 'resolveInterruptByToken',
    summary: 'Answer an interrupt with a signed token',
    access: 'public',
    success: 200,
    params: z.strictObject({ token: z.string().min(1).max(4_096) }),
    body: z.strictObject({ resumeValue: Json }),
    idempotent: true,
    holds: 'nothing',
  },

  verifyAudit: {
    method: 'GET',
    path: '/v1/audit/verify',
    operationId: 'verifyAudit',
    summary: "Is the tenant's audit log as it was written and sealed",
    access: ['audit:read'],
    success: 200,
    query: z.looseObject({ fromSeq: integer('fromSeq').optional(), toSeq: integer('toSeq').optional() }),
    holds: 'nothing',
  },

  createWebhook: {
    method: 'POST',
    path: '/v1/webhooks',
    operationId: 'registerWebhook',
    summary: "Be told of events of the workspace's runs",
    access: ['webhooks:manage'],
    success: 201,
    body: CreateWebhookBody,
    idempotent: true,
    holds: 'nothing',
  },
  deleteWebhook: {
    method: 'DELETE',
    path: '/v1/webhooks/{webhookId}',
    operationId: 'unregisterWebhook',
    summary: 'Be told no more',
    access: ['webhooks:manage'],
    success: 204,
    params: z.strictObject({ webhookId: z.string().regex(/^[ -~]{1,128}$/, 'is no id of a webhook') }),
    query: z.looseObject({ tenantId: z.string().max(128).optional() }),
    holds: 'tenant',
  },

  putWorkflow: {
    method: 'PUT',
    path: '/v1/host/isthmus/workflows/{workflowId}',
    operationId: 'putHostWorkflow',
    summary: 'Register a workflow definition as the next revision',
    access: ['manifest:write'],
    success: 200,
    params: z.strictObject({ workflowId: WorkflowId }),
    body: z.looseObject({}),
    holds: 'nothing',
  },
  getHostWorkflow: {
    method: 'GET',
    path: '/v1/host/isthmus/workflows/{workflowId}',
    operationId: 'getHostWorkflow',
    summary: 'A workflow definition with its revision',
    access: ['manifest:read'],
    success: 200,
    params: z.strictObject({ workflowId: WorkflowId }),
    holds: 'tenant',
  },
  listWorkflows: {
    method: 'GET',
    path: '/v1/host/isthmus/workflows',
    operationId: 'listHostWorkflows',
    summary: 'The workflows of the tenant',
    access: ['manifest:read'],
    success: 200,
    query: z.looseObject({ cursor: z.string().max(500).optional(), limit: limit(500) }),
    holds: 'nothing',
  },
  listRuns: {
    method: 'GET',
    path: '/v1/host/isthmus/runs',
    operationId: 'listHostRuns',
    summary: 'The runs of the workspace, newest first',
    access: ['runs:read'],
    success: 200,
    query: z.looseObject({
      status: z
        .string()
        .transform((text) => text.split(',').map((part) => part.trim()))
        .pipe(z.array(RunStatus))
        .optional(),
      workflowId: WorkflowId.optional(),
      tag: z.string().min(1).max(256).optional(),
      cursor: z.string().max(500).optional(),
      limit: limit(500),
    }),
    holds: 'nothing',
  },
  putMount: {
    method: 'PUT',
    path: '/v1/host/isthmus/mounts/{serverId}',
    operationId: 'putHostMount',
    summary: 'Register a remote MCP server that workflows may call',
    access: ['mcp:manage'],
    success: 200,
    params: z.strictObject({ serverId: ServerId }),
    body: MountSpec,
    holds: 'nothing',
  },
  getMount: {
    method: 'GET',
    path: '/v1/host/isthmus/mounts/{serverId}',
    operationId: 'getHostMount',
    summary: 'A remote MCP server of the tenant',
    access: ['mcp:read'],
    success: 200,
    params: z.strictObject({ serverId: ServerId }),
    holds: 'tenant',
  },
  listMounts: {
    method: 'GET',
    path: '/v1/host/isthmus/mounts',
    operationId: 'listHostMounts',
    summary: 'The remote MCP servers of the tenant',
    access: ['mcp:read'],
    success: 200,
    query: z.looseObject({ cursor: z.string().max(500).optional(), limit: limit(500) }),
    holds: 'nothing',
  },
  deleteMount: {
    method: 'DELETE',
    path: '/v1/host/isthmus/mounts/{serverId}',
    operationId: 'deleteHostMount',
    summary: 'Forget a remote MCP server',
    access: ['mcp:manage'],
    success: 204,
    params: z.strictObject({ serverId: ServerId }),
    holds: 'tenant',
  },
  listMountTools: {
    method: 'GET',
    path: '/v1/host/isthmus/mounts/{serverId}/tools',
    operationId: 'listHostMountTools',
    summary: 'The tools a remote MCP server lists',
    access: ['mcp:read'],
    success: 200,
    params: z.strictObject({ serverId: ServerId }),
    holds: 'tenant',
  },
} as const satisfies Record<string, Route>;

export type RouteName = keyof typeof ROUTES;

/**
 * `{runId}` of a template as `:runId` of the router. A colon of the path itself is doubled, and a parameter in front of one ends
 * there. (traps.md 21)
 */
export const routerPath = (route: Route): string =>
  route.path
    .replaceAll(':', '::')
    .replace(/\{(\w+)\}(::)?/g, (_, name: string, verb?: string) => (verb ? `:${name}([^/:]+)::` : `:${name}`));

/** A path segment that cannot be a run id names no run: it is not found, never an error of the database. */
export const isRunId = (text: string): boolean => RunId.safeParse(text).success;
