import { z } from 'zod';
import { AuthorId, NodeId, WorkflowId } from './ids.js';
import { Json, JsonObject } from './json.js';

/** Where an input of a node comes from. (workflow-definition.schema.json) */
export const PortValue = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('static'), value: Json }),
  z.strictObject({ type: z.literal('expression'), expression: z.string().min(1).max(10_000) }),
  z.strictObject({ type: z.literal('connection'), nodeId: NodeId, outputKey: z.string(), optional: z.boolean().optional() }),
  z.strictObject({ type: z.literal('variable'), variableName: z.string().min(1), optional: z.boolean().optional() }),
]);
export type PortValue = z.infer<typeof PortValue>;

export const TRIGGER_RULES = ['all_success', 'any_success', 'all_complete', 'none_failed', 'any_failed'] as const;
export type TriggerRule = (typeof TRIGGER_RULES)[number];

/**
 * `equals` and `notEquals` compare deeply, `contains` is substring or membership, `regex` is matched in linear time (RE2),
 * `expression` is CEL. `left` is a path into `{status, output, variables, inputs}` of the source node's completion.
 */
export const Condition = z.strictObject({
  type: z.enum(['expression', 'equals', 'notEquals', 'contains', 'regex']).optional(),
  left: z.string().max(1_000).optional(),
  right: Json.optional(),
  expression: z.string().max(10_000).optional(),
});
export type Condition = z.infer<typeof Condition>;

export const Edge = z.strictObject({
  id: AuthorId,
  sourceNodeId: NodeId,
  targetNodeId: NodeId,
  sourceOutput: z.string().optional(),
  targetInput: z.string().optional(),
  condition: Condition.optional(),
  label: z.string().optional(),
  triggerRule: z.enum(TRIGGER_RULES).optional(),
});
export type Edge = z.infer<typeof Edge>;

export const WorkflowNode = z.strictObject({
  id: NodeId,
  typeId: z
    .string()
    .regex(/^[a-z][a-zA-Z0-9._-]*$/)
    .max(256),
  name: z.string().max(256).optional(),
  position: z.strictObject({ x: z.number(), y: z.number() }).optional(),
  config: JsonObject.default({}),
  inputs: z.record(z.string(), PortValue).default({}),
  settings: JsonObject.optional(),
  credentialsRef: z.string().optional(),
  outputRole: z.enum(['primary', 'secondary']).optional(),
  disabled: z.boolean().optional(),
  notes: z.string().optional(),
  groupId: z.string().optional(),
  agent: JsonObject.optional(),
  envelopeContract: JsonObject.optional(),
  artifactType: z.string().optional(),
  cardType: z.string().optional(),
  outputSensitivity: z.record(z.string(), z.boolean()).optional(),
});
export type WorkflowNode = z.infer<typeof WorkflowNode>;

export const Variable = z.strictObject({
  name: z.string().min(1).max(256),
  type: z.enum(['string', 'number', 'boolean', 'object', 'array']),
  description: z.string().optional(),
  required: z.boolean().optional(),
  defaultValue: Json.optional(),
  sensitive: z.boolean().optional(),
});
export type Variable = z.infer<typeof Variable>;

const Trigger = z.strictObject({
  id: AuthorId,
  type: z.enum(['manual', 'schedule', 'webhook', 'event', 'artifact', 'canvas', 'envelope', 'command', 'chat-message', 'channel-write']),
  name: z.string().optional(),
  description: z.string().optional(),
  config: JsonObject.optional(),
  enabled: z.boolean().optional(),
  nodeId: NodeId.optional(),
  eventType: z.string().optional(),
});

const Settings = z.looseObject({
  timeout: z.int().min(0).optional(),
  maxRetries: z.int().min(0).optional(),
  logLevel: z.string().optional(),
  maxLoopbackIterations: z.int().min(1).optional(),
});

/** (channels-and-reducers.md; an unknown `vendor.*` reducer folds as `replace`) */
export const ChannelDeclaration = z.strictObject({
  reducer: z
    .string()
    .regex(/^(replace|append|merge|counter|votes|feedback|message|vendor\.[a-z0-9-]+\.[A-Za-z0-9._-]+)$/, 'is not a known reducer'),
  schema: JsonObject.optional(),
  default: Json.optional(),
  maxSize: z.int().min(1).optional(),
  ttlMs: z.int().min(1).max(31_536_000_000).optional(),
  options: JsonObject.optional(),
  access: z
    .union([
      z.enum(['public', 'private']),
      z.strictObject({ readers: z.array(z.string()).max(256).optional(), writers: z.array(z.string()).max(256).optional() }),
    ])
    .optional(),
  schemaVersion: z.int().min(1).optional(),
  compatibleWith: z.array(z.int().min(1)).optional(),
  sensitive: z.boolean().optional(),
});
export type ChannelDeclaration = z.infer<typeof ChannelDeclaration>;

/** Most nodes a definition may have: a fold of the largest run stays in the milliseconds. */
export const MAX_NODES = 1_000;

/**
 * A workflow definition. The document's closed root; what a caller may leave out here gets the obvious value, so that a
 * small workflow is a small document. (workflow-definition.schema.json)
 */
export const WorkflowDefinition = z.strictObject({
  id: WorkflowId,
  name: z.string().min(1).max(256),
  version: z.string().min(1).max(128).default('1'),
  description: z.string().max(10_000).optional(),
  type: z.string().optional(),
  isActive: z.boolean().optional(),
  status: z.enum(['active', 'inactive', 'draft', 'archived']).optional(),
  tenantId: z.string().optional(),
  scopeId: z.string().optional(),
  slug: z.string().optional(),
  groups: z.array(JsonObject).optional(),
  nodes: z.array(WorkflowNode).min(1).max(MAX_NODES),
  edges: z
    .array(Edge)
    .max(MAX_NODES * 4)
    .default([]),
  triggers: z.array(Trigger).default([]),
  variables: z.array(Variable).max(1_000).default([]),
  metadata: JsonObject.default({}),
  settings: Settings.default({}),
  channels: z.record(z.string(), ChannelDeclaration).optional(),
  configurableSchema: JsonObject.optional(),
  defaults: JsonObject.optional(),
  acceptsInheritedArtifacts: z.array(z.string()).optional(),
  createdAt: z.string().optional(),
  updatedAt: z.string().optional(),
});
export type WorkflowDefinition = z.infer<typeof WorkflowDefinition>;
