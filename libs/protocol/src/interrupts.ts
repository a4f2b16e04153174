import { z } from 'zod';
import { Json, JsonObject } from './json.js';
import type { RunStatus } from './runs.js';

export const APPROVAL_ACTIONS = ['accept', 'reject', 'refine', 'edit-accept', 'ask'] as const;
export const ApprovalAction = z.enum(APPROVAL_ACTIONS);
export type ApprovalAction = z.infer<typeof ApprovalAction>;

/** What an approver is asked. Open, as the payload catalogue has it. (suspend-request.schema.json) */
export const ApprovalData = z.looseObject({
  artifactId: z.string(),
  artifactType: z.string(),
  title: z.string().min(1).max(500),
  actions: z.array(ApprovalAction).min(1),
  description: z.string().max(10_000).optional(),
  artifactData: Json.optional(),
  requiredApprovals: z.int().min(1).default(1),
  approversList: z.array(z.string()).optional(),
  rejectionPolicy: z.enum(['single-veto', 'majority']).default('single-veto'),
  /** Who may set the quorum aside, with a reason; absent: nobody. (RFC 0051) */
  overriders: z.array(z.string()).optional(),
  overrideBypassesQuorum: z.boolean().default(false),
  /** Resolved when somebody decides, against what authz knows of the principal then. (RFC 0104) */
  approverGroupRefs: z.array(z.string()).optional(),
  approverRoleRefs: z.array(z.string()).optional(),
  /** A signed token may not resolve it: only a credential. (openwop-interrupt-auth-required) */
  authRequired: z.boolean().optional(),
  /** Of a governed gate: its events are approval.granted, .rejected and .overridden. (RFC 0051) */
  gateId: z.string().optional(),
});
export type ApprovalData = z.infer<typeof ApprovalData>;

export const Question = z.looseObject({
  id: z.string().min(1).max(256),
  question: z.string().min(1).max(10_000),
  schema: JsonObject.optional(),
});
export const ClarificationData = z.looseObject({ questions: z.array(Question).min(1).max(100), contextType: z.string().optional() });
export type ClarificationData = z.infer<typeof ClarificationData>;

export const RefineFeedback = z.looseObject({
  scope: z.enum(['whole', 'section', 'items']),
  sectionPath: z.string().optional(),
  itemIds: z.array(z.string()).optional(),
  tags: z.array(z.string()).optional(),
  text: z.string().optional(),
});

/** How an approval is answered. `decidedBy` is not here: the host fills it from the authenticated principal. */
export const ApprovalResume = z.looseObject({
  action: ApprovalAction,
  comment: z.string().max(10_000).optional(),
  feedback: z.string().max(10_000).optional(),
  refineFeedback: RefineFeedback.optional(),
  editedArtifactData: Json.optional(),
  voter: z.string().max(256).optional(),
  /** Sets the quorum aside, where the gate lets this principal do so. Needs a reason. */
  override: z.boolean().optional(),
  reason: z.string().max(10_000).optional(),
});
export type ApprovalResume = z.infer<typeof ApprovalResume>;

const Answers = z.union([
  z.record(z.string(), Json),
  z
    .array(z.looseObject({ id: z.string(), answer: Json }))
    .transform((list) => Object.fromEntries(list.map(({ id, answer }) => [id, answer]))),
]);
/**
 * Both published forms of `answers` are accepted; the object form is kept. (interrupt.md against the suite) `action` is how a
 * person says no: `decline` and `cancel` need no answers.
 */
export const ClarificationResume = z
  .looseObject({ answers: Answers.optional(), action: z.enum(['accept', 'decline', 'cancel']).default('accept') })
  .refine(({ action, answers }) => action !== 'accept' || answers !== undefined, {
    path: ['answers'],
    message: 'is missing: one answer per question id',
  });
export type ClarificationResume = z.infer<typeof ClarificationResume>;

/** Something outside happens; the answer carries every member of `correlation`, deeply equal. */
export const ExternalEventData = z.looseObject({ eventType: z.string().min(1).max(256), correlation: JsonObject });
export type ExternalEventData = z.infer<typeof ExternalEventData>;
export const CustomData = z.looseObject({ customKind: z.string().min(1).max(256), payload: Json.optional() });
export const LowConfidenceData = z.looseObject({
  agentId: z.string().min(3).max(256),
  threshold: z.number().min(0).max(1),
  observed: z.number().min(0).max(1),
  decision: Json.optional(),
});
const AnyResume = Json;

type Kind = { readonly status: RunStatus; readonly data: z.ZodType; readonly resume: z.ZodType };

/** The kinds a run can wait for: the status it then has, what is asked, how it is answered. (interrupt.md) */
export const INTERRUPTS = {
  approval: { status: 'waiting-approval', data: ApprovalData, resume: ApprovalResume },
  clarification: { status: 'waiting-input', data: ClarificationData, resume: ClarificationResume },
  'external-event': { status: 'waiting-external', data: ExternalEventData, resume: JsonObject },
  custom: { status: 'waiting-input', data: CustomData, resume: AnyResume },
  'low-confidence': { status: 'waiting-approval', data: LowConfidenceData, resume: AnyResume },
} as const satisfies Record<string, Kind>;

export type InterruptKind = keyof typeof INTERRUPTS;
export const InterruptKind = z.enum(Object.keys(INTERRUPTS) as [InterruptKind, ...InterruptKind[]]);

/** What a node asks for. `key` is unique in the run: the same key never asks twice. (interrupt.md) */
export const InterruptRequest = z.strictObject({
  kind: InterruptKind,
  key: z.string().min(1).max(256),
  data: JsonObject,
  resumeSchema: JsonObject.optional(),
  timeoutMs: z.int().min(0).optional(),
  /** E.g. `{mcp: {inputRequestKey, serverId, toolName}}`: where the question came from. */
  metadata: JsonObject.optional(),
});
export type InterruptRequest = z.infer<typeof InterruptRequest>;
