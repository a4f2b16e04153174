import { z } from 'zod';
import { contract } from '../contract.js';
import { Description } from '../capabilities.js';
import { ErrorEnvelope } from '../errors.js';
import { RunEvent } from '../events.js';
import { RunId, WorkflowId } from '../ids.js';
import { Json, JsonObject } from '../json.js';
import {
  Configurable,
  DRAIN_POLICIES,
  MAX_BULK_CANCEL,
  OpenInterrupt,
  RunError,
  RunMetadata,
  RunSnapshot,
  RunStatus,
  RunSummary,
} from '../runs.js';
import { WorkflowDefinition } from '../workflow.js';

/**
 * Layer-1 idempotency: `endpoint` is the routed template, `digest` covers path parameters and the canonical body; the key
 * itself arrives hashed. (idempotency.md 1.7)
 */
export const Idempotency = z.strictObject({ endpoint: z.string(), keyHash: z.string(), digest: z.string() });
export type Idempotency = z.infer<typeof Idempotency>;

export const EXPOSURE_KINDS = ['tool', 'resource', 'resource-template', 'prompt'] as const;

/** What an `expose-*` node publishes: the manifest as its author wrote it, and the workflow that answers. */
export const Exposure = z.strictObject({
  kind: z.enum(EXPOSURE_KINDS),
  /** Tool or prompt name, resource URI, URI template: unique per tenant, mount and kind. */
  name: z.string(),
  workflowId: WorkflowId,
  nodeId: z.string(),
  manifest: JsonObject,
});
export type Exposure = z.infer<typeof Exposure>;

const WorkflowHead = z.strictObject({ workflowId: WorkflowId, revision: z.int().min(1), name: z.string(), updatedAt: z.string() });

/** Contracts of the engine: workflows, runs, interrupts. */
export const engine = {
  /** Registers a definition as the workflow's next revision. Errors: validation_error, capability_required. */
  putWorkflow: contract('engine.workflow.put', {
    access: ['manifest:write'],
    input: z.strictObject({ definition: WorkflowDefinition }),
    output: WorkflowHead.extend({ created: z.boolean() }),
  }),
  getWorkflow: contract('engine.workflow.get', {
    access: ['manifest:read'],
    input: z.strictObject({ workflowId: WorkflowId }),
    output: WorkflowHead.extend({ definition: WorkflowDefinition }),
  }),
  listWorkflows: contract('engine.workflow.list', {
    access: ['manifest:read'],
    input: z.strictObject({ cursor: z.string().optional(), limit: z.int().min(1).max(500).default(100) }),
    output: z.strictObject({ workflows: z.array(WorkflowHead), nextCursor: z.string().optional() }),
  }),

  /**
   * What the caller's tenant exposes on a mount. `version` is read from the database for each request, so a registration is
   * seen by the next one on any replica; entries are left out when the asker already holds that version.
   */
  listExposures: contract('engine.exposure.list', {
    access: [],
    input: z.strictObject({ mount: z.string(), knownVersion: z.string().optional() }),
    output: z.strictObject({ version: z.string(), exposures: z.array(Exposure).optional() }),
  }),

  /**
   * Starts a run. `run.started` is committed when this answers; the answer never shows a terminal status unless `holdMs`
   * asked to wait for it to settle (end, or wait for the outside), at most 2000 ms.
   * Errors: validation_error (unknown workflow, bad inputs), idempotency_key_mismatch.
   */
  createRun: contract('engine.run.create', {
    access: ['runs:create'],
    deadlineMs: 10_000,
    input: z.strictObject({
      workflowId: WorkflowId,
      inputs: JsonObject.default({}),
      configurable: Configurable.optional(),
      tags: z.array(z.string()).optional(),
      metadata: RunMetadata.optional(),
      transport: z.enum(['rest', 'mcp']),
      /** Fixed at creation and never raised: where the inputs came from. */
      trust: z.enum(['trusted', 'untrusted']),
      idempotency: Idempotency.optional(),
      holdMs: z.int().min(0).max(2_000).default(0),
    }),
    output: z.strictObject({
      runId: RunId,
      status: RunStatus,
      /** True when an earlier request with the same key made this run. */
      replayed: z.boolean(),
      settled: z.lazy(() => RunOutcome).optional(),
    }),
  }),

  /**
   * The one read: a page of events from `fromSequence` (inclusive), bounded by bytes, with the run's head; and, when asked
   * for, the snapshot or the outcome, both folded from the same log. Errors: not_found, run_forbidden.
   */
  readRun: contract('engine.run.read', {
    access: ['runs:read'],
    input: z.strictObject({
      runId: RunId,
      fromSequence: z.int().min(0).default(0),
      want: z.array(z.enum(['events', 'snapshot', 'outcome'])).default(['events']),
      /** Waits until the run is settled or something happened after `fromSequence`. Capped: askers wait on the bell. */
      waitMs: z.int().min(0).max(2_000).default(0),
    }),
    output: z.strictObject({
      runId: RunId,
      workflowId: WorkflowId,
      status: RunStatus,
      /** Sequence of the newest event. */
      head: z.int(),
      events: z.array(RunEvent).optional(),
      /** More events exist after the last one in `events`. */
      more: z.boolean(),
      snapshot: RunSnapshot.optional(),
      outcome: z.lazy(() => RunOutcome).optional(),
    }),
  }),
  /** Heads of many runs in one call, for watchers whose bell may have been lost. Unknown runs are left out. */
  runHeads: contract('engine.run.heads', {
    access: 'internal',
    input: z.strictObject({ runIds: z.array(RunId).max(5_000) }),
    output: z.strictObject({ heads: z.array(z.strictObject({ runId: RunId, head: z.int(), status: RunStatus })) }),
  }),
  listRuns: contract('engine.run.list', {
    access: ['runs:read'],
    input: z.strictObject({
      status: z.array(RunStatus).optional(),
      workflowId: WorkflowId.optional(),
      tag: z.string().optional(),
      cursor: z.string().optional(),
      limit: z.int().min(1).max(500).default(50),
    }),
    output: z.strictObject({ runs: z.array(RunSummary), nextCursor: z.string().optional() }),
  }),
  /** Idempotent: a run that has ended keeps its status, `alreadyTerminal` says so. */
  cancelRun: contract('engine.run.cancel', {
    access: ['runs:cancel'],
    input: z.strictObject({ runId: RunId, reason: z.string().max(512).optional(), idempotency: Idempotency.optional() }),
    output: z.strictObject({ runId: RunId, status: RunStatus, alreadyTerminal: z.boolean().optional(), replayed: z.boolean() }),
  }),
  /**
   * Cancels many runs. Each has its own verdict, in the order asked: cancelled, `run_terminal` when it had ended otherwise,
   * `not_found`. A repeat with the same key decides the same. Errors: idempotency_key_mismatch. (wire §4.5)
   */
  cancelRuns: contract('engine.runs.cancel', {
    access: ['runs:cancel'],
    deadlineMs: 15_000,
    input: z.strictObject({
      runIds: z.array(z.string()).min(1).max(MAX_BULK_CANCEL),
      reason: z.string().max(512).optional(),
      idempotency: Idempotency.optional(),
    }),
    output: z.strictObject({
      results: z.array(
        z.strictObject({ runId: z.string(), ok: z.boolean(), status: RunStatus.optional(), error: ErrorEnvelope.optional() }),
      ),
      replayed: z.boolean(),
    }),
  }),
  /**
   * Answers an interrupt, addressed by node or by interrupt id. First answer wins. Errors: interrupt_not_found,
   * interrupt_already_resolved, interrupt_cancelled, validation_error, forbidden (not an approver of this gate).
   */
  resolveInterrupt: contract('engine.interrupt.resolve', {
    access: ['approvals:respond'],
    input: z.strictObject({
      runId: RunId,
      at: z.union([z.strictObject({ nodeId: z.string() }), z.strictObject({ interruptId: z.string() })]),
      resumeValue: Json,
      idempotency: Idempotency.optional(),
    }),
    output: z.strictObject({ runId: RunId, nodeId: z.string(), status: RunStatus, replayed: z.boolean() }),
  }),
  /** What waits behind a signed token; the token is the credential. Errors: interrupt_token_invalid, interrupt_expired, interrupt_gone, interrupt_already_resolved. */
  inspectToken: contract('engine.interrupt.inspect', {
    access: 'internal',
    input: z.strictObject({ token: z.string().max(4_096) }),
    output: z.strictObject({ runId: RunId, interrupt: OpenInterrupt }),
  }),
  /** Resolves by token: recorded as `token:<interruptId>`. Errors as for inspectToken and resolveInterrupt; forbidden for inspect-only tokens and gates that ask for a credential. */
  resolveToken: contract('engine.interrupt.token', {
    access: 'internal',
    input: z.strictObject({ token: z.string().max(4_096), resumeValue: Json, idempotency: Idempotency.optional() }),
    output: z.strictObject({ runId: RunId, nodeId: z.string(), status: RunStatus, replayed: z.boolean() }),
  }),
  /** Stops beginning nodes; what is executing finishes first, or is given up with `immediate`. Errors: not_found, run_state_conflict with details.runStatus. */
  pauseRun: contract('engine.run.pause', {
    access: ['runs:cancel'],
    input: z.strictObject({
      runId: RunId,
      reason: z.string().max(512).optional(),
      drainPolicy: z.enum(DRAIN_POLICIES).default('drain-current-node'),
      idempotency: Idempotency.optional(),
    }),
    output: z.strictObject({ runId: RunId, status: RunStatus, pausedAt: z.string(), replayed: z.boolean() }),
  }),
  resumeRun: contract('engine.run.resume', {
    access: ['runs:cancel'],
    input: z.strictObject({ runId: RunId, reason: z.string().max(512).optional(), idempotency: Idempotency.optional() }),
    output: z.strictObject({ runId: RunId, status: RunStatus, resumedAt: z.string(), replayed: z.boolean() }),
  }),
  /** A new run from a prefix of another one's log. Errors: not_found, validation_error, fork_point_invalid, run_expired. (replay.md §4.1) */
  forkRun: contract('engine.run.fork', {
    access: ['runs:create', 'runs:read'],
    deadlineMs: 10_000,
    input: z.strictObject({
      runId: RunId,
      mode: z.enum(['replay', 'branch']),
      fromSeq: z.int().min(0),
      overlay: z
        .strictObject({ configurable: Configurable.optional(), tags: z.array(z.string()).optional(), metadata: RunMetadata.optional() })
        .optional(),
      idempotency: Idempotency.optional(),
    }),
    output: z.strictObject({
      runId: RunId,
      sourceRunId: RunId,
      fromSeq: z.int(),
      mode: z.enum(['replay', 'branch']),
      status: RunStatus,
      replayed: z.boolean(),
    }),
  }),
  /**
   * Claims one logical invocation of a run for this engine, as an effect does before it is sent: of all who ask, one is told
   * `fresh`. For test seams: refused with `not_found` unless the process was started with them on. (spec/seams.md §7)
   */
  claimInvocation: contract('engine.invocation.claim', {
    access: ['runs:create'],
    input: z.strictObject({ runId: RunId, nodeId: z.string(), ordinal: z.int().min(0), providerKey: z.string() }),
    output: z.strictObject({ invocationId: z.string(), claimed: z.enum(['fresh', 'unknown', 'done']) }),
  }),
  describe: contract('engine.service.describe', { access: 'internal', input: z.strictObject({}), output: Description }),
};

/** A run as an MCP answer needs it: is it over, or what does it wait for; values resolved, trust told. */
export const RunOutcome = z.discriminatedUnion('is', [
  z.strictObject({ is: z.literal('working'), status: RunStatus }),
  z.strictObject({ is: z.literal('waiting'), status: RunStatus, interrupts: z.array(OpenInterrupt).min(1) }),
  z.strictObject({ is: z.literal('completed'), outputs: JsonObject, contentTrust: z.enum(['trusted', 'untrusted']) }),
  z.strictObject({ is: z.literal('failed'), error: RunError }),
  z.strictObject({ is: z.literal('cancelled'), reason: z.string().optional() }),
]);
export type RunOutcome = z.infer<typeof RunOutcome>;
