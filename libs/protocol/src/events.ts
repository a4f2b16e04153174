import { z } from 'zod';
import { eventId } from './ids.js';
import { Json, JsonObject } from './json.js';
import { Owner } from './owner.js';
import { ENGINE_VERSION, RunError } from './runs.js';

const nodeId = z.string();
const int = z.int().min(0);

/**
 * Every event type this host appends, its payload, and whether the default stream mode `updates` shows it (`debug` shows
 * all). Payloads hold no run ids, clock readings or measured durations: two replays of a run are equal. Results of MCP
 * tools never stand here: hash, size and status do. (run-event-payloads.schema.json, stream-modes.md, rule MCP-1)
 */
export const EVENTS = {
  'run.started': {
    updates: true,
    payload: z.strictObject({
      workflowId: z.string(),
      inputs: JsonObject.optional(),
      transport: z.enum(['rest', 'mcp', 'a2a', 'ui']),
      engineVersion: z.string(),
      owner: Owner,
      tags: z.array(z.string()).optional(),
      metadata: JsonObject.optional(),
      activityIdentityRecipe: z.string(),
    }),
  },
  'run.completed': { updates: true, payload: z.strictObject({ outputs: JsonObject.optional() }) },
  'run.failed': { updates: true, payload: z.strictObject({ error: RunError, failedNodeId: z.string().optional() }) },
  'run.cancelled': {
    updates: true,
    payload: z.strictObject({
      reason: z.string().optional(),
      cancelledBy: z.string().optional(),
      /** Only where a parent's end took the run along. */
      parentRunId: z.string().optional(),
    }),
  },

  'run.paused': {
    updates: true,
    payload: z.strictObject({ reason: z.string().optional(), drainPolicy: z.string(), pausedBy: z.string() }),
  },
  'run.resumed': { updates: true, payload: z.strictObject({ reason: z.string().optional(), resumedBy: z.string() }) },

  'node.started': { updates: false, payload: z.strictObject({ nodeId, typeId: z.string(), attempt: int }) },
  'node.completed': { updates: true, payload: z.strictObject({ nodeId, outputs: JsonObject.optional() }) },
  'node.failed': { updates: true, payload: z.strictObject({ nodeId, error: RunError, attempts: z.int().min(1) }) },
  'node.skipped': { updates: true, payload: z.strictObject({ nodeId, reason: z.string() }) },
  'node.suspended': { updates: true, payload: z.strictObject({ nodeId, interruptId: z.string(), kind: z.string(), key: z.string() }) },
  'node.resumed': { updates: true, payload: z.strictObject({ nodeId, interruptId: z.string(), resumeValue: Json.optional() }) },

  'node.retried': {
    updates: false,
    payload: z.strictObject({ nodeId, attempt: z.int().min(1), delayMs: int, lastError: RunError }),
  },
  'node.dispatched': {
    updates: true,
    payload: z.strictObject({ nodeId, childRunId: z.string(), childWorkflowId: z.string(), childStatus: z.string().optional() }),
  },

  'interrupt.requested': {
    updates: true,
    payload: z.strictObject({
      nodeId,
      interruptId: z.string(),
      kind: z.string(),
      key: z.string(),
      data: JsonObject,
      resumeSchema: JsonObject.optional(),
      timeoutMs: int.optional(),
      metadata: JsonObject.optional(),
    }),
  },
  'interrupt.resolved': {
    updates: true,
    payload: z.strictObject({
      nodeId,
      interruptId: z.string(),
      kind: z.string(),
      action: z.string().optional(),
      resumeValue: Json.optional(),
      refineFeedback: Json.optional(),
      editedArtifactData: Json.optional(),
      resolvedBy: z.string(),
      outcome: z.string().optional(),
      reason: z.string().optional(),
    }),
  },
  'approval.requested': {
    updates: true,
    payload: z.strictObject({
      nodeId,
      artifactId: z.string(),
      artifactType: z.string(),
      actions: z.array(z.string()),
      interruptId: z.string(),
      title: z.string(),
      requiredApprovals: z.int().min(1),
      approversList: z.array(z.string()).optional(),
    }),
  },
  'approval.received': {
    updates: true,
    payload: z.strictObject({
      nodeId,
      action: z.string(),
      decidedBy: z.string(),
      comment: z.string().optional(),
      feedback: z.string().optional(),
      refineFeedback: Json.optional(),
      editedArtifactData: Json.optional(),
    }),
  },
  'approval.granted': {
    updates: true,
    payload: z.strictObject({
      gateId: z.string(),
      principal: z.string(),
      quorumProgress: z.strictObject({ granted: int, required: z.int().min(1) }).optional(),
    }),
  },
  'approval.rejected': {
    updates: true,
    payload: z.strictObject({ gateId: z.string(), principal: z.string(), reason: z.string().optional() }),
  },
  'approval.overridden': {
    updates: true,
    payload: z.strictObject({ gateId: z.string(), principal: z.string(), reason: z.string().min(1) }),
  },
  'clarification.requested': {
    updates: true,
    payload: z.strictObject({ nodeId, questions: z.array(JsonObject), interruptId: z.string() }),
  },
  'clarification.resolved': { updates: true, payload: z.strictObject({ nodeId, answers: JsonObject, answeredBy: z.string() }) },

  'agent.toolCalled': {
    updates: true,
    payload: z.strictObject({
      agentId: z.string().min(3),
      toolName: z.string(),
      callId: z.string(),
      argsHash: z.string(),
      principal: z.string(),
      transport: z.literal('mcp'),
      serverId: z.string(),
      nodeId,
    }),
  },
  'agent.toolReturned': {
    updates: true,
    payload: z.strictObject({
      agentId: z.string().min(3),
      toolName: z.string(),
      callId: z.string(),
      status: z.enum(['ok', 'error', 'forbidden', 'rate_limited']),
      resultSha256: z.string().optional(),
      resultLength: int.optional(),
      isError: z.boolean().optional(),
      negotiatedVersion: z.string().optional(),
      error: RunError.optional(),
      nodeId,
    }),
  },
  'variable.changed': {
    updates: false,
    payload: z.strictObject({ name: z.string(), previous: Json.optional(), next: Json, nodeId: z.string().optional() }),
  },
  'channel.written': {
    updates: false,
    payload: z.strictObject({
      channel: z.string().max(256),
      value: Json,
      reducer: z.string(),
      writtenAt: z.string(),
      nodeId: z.string().optional(),
      schemaVersion: z.int().min(1).optional(),
    }),
  },
  'replay.diverged': {
    updates: false,
    payload: z.strictObject({
      sourceRunId: z.string(),
      atSequence: int,
      divergenceKind: z.enum(['output', 'missing', 'extra', 'type-mismatch']),
      divergencePoint: z.string(),
    }),
  },
  'cap.breached': {
    updates: true,
    payload: z.strictObject({ kind: z.string(), limit: z.number(), observed: z.number(), nodeId: z.string().optional() }),
  },
} as const satisfies Record<string, { updates: boolean; payload: z.ZodType }>;

export type EventType = keyof typeof EVENTS;
export type Payload<T extends EventType> = z.infer<(typeof EVENTS)[T]['payload']>;

/** A fact before it has a place in a log. */
export type EventOf<T extends EventType = EventType> = T extends EventType
  ? { readonly type: T; readonly payload: Payload<T>; readonly causationId?: string; readonly contentTrust?: 'untrusted' }
  : never;

/** A fact in a run's log, as it stands on the wire. `sequence` starts at 0 and has no gaps. (run-event.schema.json) */
export const RunEvent = z.strictObject({
  eventId: z.string(),
  runId: z.string(),
  type: z.string(),
  payload: Json,
  timestamp: z.string(),
  sequence: int,
  nodeId: z.string().optional(),
  causationId: z.string().optional(),
  contentTrust: z.literal('untrusted').optional(),
  schemaVersion: int,
  engineVersion: z.string(),
});
export type RunEvent = z.infer<typeof RunEvent>;

/** Milliseconds since 1970 as RFC 3339 in UTC. */
export const isoTime = (milliseconds: number): string => new Date(milliseconds).toISOString();

/** The wire form of a stored fact. */
export function toRunEvent(
  runId: string,
  sequence: number,
  at: Date,
  event: { type: string; payload: Json; causationId?: string | null; contentTrust?: string | null },
): RunEvent {
  const payload = event.payload as { nodeId?: string };
  return {
    eventId: eventId(runId, sequence),
    runId,
    type: event.type,
    payload: event.payload,
    timestamp: at.toISOString(),
    sequence,
    ...(typeof payload?.nodeId === 'string' && { nodeId: payload.nodeId }),
    ...(event.causationId && { causationId: event.causationId }),
    ...(event.contentTrust === 'untrusted' && { contentTrust: 'untrusted' as const }),
    schemaVersion: 1,
    engineVersion: String(ENGINE_VERSION),
  };
}

export const isEventType = (type: string): type is EventType => Object.hasOwn(EVENTS, type);
export const TERMINAL_EVENTS: ReadonlySet<string> = new Set<EventType>(['run.completed', 'run.failed', 'run.cancelled']);
