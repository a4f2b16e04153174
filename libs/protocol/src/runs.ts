import { z } from 'zod';
import { Json, JsonObject } from './json.js';
import { Owner } from './owner.js';
import { RunId, WorkflowId } from './ids.js';

export const RUN_STATUSES = [
  'pending',
  'running',
  'paused',
  'waiting-approval',
  'waiting-input',
  'waiting-external',
  'completed',
  'failed',
  'cancelling',
  'cancelled',
] as const;
export const RunStatus = z.enum(RUN_STATUSES);
export type RunStatus = z.infer<typeof RunStatus>;

export const isTerminal = (status: RunStatus): boolean => status === 'completed' || status === 'failed' || status === 'cancelled';

/** What ended a node or a run badly. (error.code is open: nodes may bring their own) */
export const RunError = z.strictObject({
  code: z.string(),
  message: z.string(),
  details: JsonObject.optional(),
  retryable: z.boolean().optional(),
});
export type RunError = z.infer<typeof RunError>;

/** Numbers the host is held to; the discovery document publishes them. */
export const LIMITS = {
  clarificationRounds: 3,
  schemaRounds: 2,
  envelopesPerTurn: 5,
  maxNodeExecutions: 1_000,
  maxRunDurationMs: 30 * 24 * 3_600_000,
  maxRequestBodyBytes: 384 * 1024,
} as const;

/** Most runs one bulk cancel names. (wire §4.5) */
export const MAX_BULK_CANCEL = 100;

const positive = z.int().min(1);
/** Reserved keys have one meaning and one type; all others pass through to nodes untouched. (run-options.md) */
export const Configurable = z.looseObject({ recursionLimit: positive.optional(), runTimeoutMs: positive.optional() });

const depthAtMost = (value: unknown, depth: number): boolean =>
  typeof value !== 'object' || value === null || (depth > 0 && Object.values(value).every((child) => depthAtMost(child, depth - 1)));

/** At most 4 levels and 8192 bytes. (run-options.md prose; the schema's looser comment is not followed) */
export const RunMetadata = JsonObject.refine((value) => depthAtMost(value, 4), 'must not be nested deeper than 4 levels').refine(
  (value) => new TextEncoder().encode(JSON.stringify(value)).length <= 8192,
  'must be at most 8192 bytes as JSON',
);

/** Body of `POST /v1/runs`: closed, unknown members are refused. (wire §4.2) */
export const CreateRunBody = z.strictObject({
  workflowId: WorkflowId,
  inputs: JsonObject.optional(),
  /** May only repeat the credential's tenant. */
  tenantId: z.string().min(1).optional(),
  scopeId: z.string().min(1).optional(),
  configurable: Configurable.optional(),
  tags: z.array(z.string().min(1).max(256)).max(100).optional(),
  metadata: RunMetadata.optional(),
});
export type CreateRunBody = z.infer<typeof CreateRunBody>;

/** An interrupt that is open, as a snapshot shows it. */
export const OpenInterrupt = z.strictObject({
  interruptId: z.string(),
  nodeId: z.string(),
  kind: z.string(),
  key: z.string(),
  payload: JsonObject,
  metadata: JsonObject.optional(),
  /** Resolves this interrupt without another credential; shown to callers that hold approvals:respond, and for external events. */
  interruptToken: z.string().optional(),
  callbackUrl: z.string().optional(),
});
export type OpenInterrupt = z.infer<typeof OpenInterrupt>;

/** (run-snapshot.schema.json; `inputs` and `interrupt` are what suites and people read besides) */
export const RunSnapshot = z.strictObject({
  runId: RunId,
  workflowId: WorkflowId,
  status: RunStatus,
  owner: Owner,
  currentNodeId: z.string().optional(),
  startedAt: z.string().optional(),
  completedAt: z.string().optional(),
  nodeStates: z.record(z.string(), JsonObject),
  variables: z.record(z.string(), Json),
  channels: z.record(z.string(), Json).optional(),
  inputs: JsonObject,
  interrupt: OpenInterrupt.optional(),
  interrupts: z.array(OpenInterrupt).optional(),
  error: RunError.optional(),
  outputs: Json.optional(),
  pausedAt: z.string().optional(),
  parentRunId: RunId.optional(),
  parentNodeId: z.string().optional(),
  childRuns: z.array(z.strictObject({ runId: RunId, status: z.string() })).optional(),
  /** Of a fork. */
  sourceRunId: RunId.optional(),
  mode: z.enum(['replay', 'branch']).optional(),
  engineVersion: z.string(),
  eventLogSchemaVersion: z.int(),
  workflowRevision: z.int(),
  configurable: JsonObject.optional(),
  tags: z.array(z.string()).optional(),
  metadata: JsonObject.optional(),
});
export type RunSnapshot = z.infer<typeof RunSnapshot>;

/** One line of the run list. */
export const RunSummary = z.strictObject({
  runId: RunId,
  workflowId: WorkflowId,
  status: RunStatus,
  owner: Owner,
  startedAt: z.string(),
  completedAt: z.string().optional(),
  tags: z.array(z.string()).optional(),
});
export type RunSummary = z.infer<typeof RunSummary>;

export const DRAIN_POLICIES = ['drain-current-node', 'immediate'] as const;
export type DrainPolicy = (typeof DRAIN_POLICIES)[number];

export const ENGINE_VERSION = 1;
export const EVENT_LOG_SCHEMA_VERSION = 2;
