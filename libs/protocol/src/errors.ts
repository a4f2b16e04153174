import { z } from 'zod';
import { JsonObject } from './json.js';
import { looksLikeCredential, maskCredentials } from './secrets.js';

type Row = {
  /** HTTP status where the error crosses the REST edge. */
  readonly status: number;
  /** May the same request be sent again and succeed? */
  readonly retriable?: true;
  /** JSON-RPC code where the error crosses the MCP edge; -32603 when absent. */
  readonly mcp?: number;
  readonly means: string;
};

/**
 * Every error code that leaves a service, on REST, on MCP, in `run.failed` and between services. (rest-endpoints.md and
 * the documents that define the later codes; `docs/errors.md` is generated from this table.)
 */
export const ERRORS = {
  unauthenticated: { status: 401, means: 'no credential, or one that nobody issued' },
  key_expired: { status: 401, means: 'the key was valid once and has expired' },
  key_revoked: { status: 401, means: 'the key was revoked' },
  forbidden: { status: 403, means: 'the credential lacks the scope in details.scopeRequired' },
  run_forbidden: { status: 403, means: 'the run belongs to another workspace of the tenant' },
  workspace_membership_required: { status: 403, means: 'the principal is not a member of the workspace' },
  validation_error: { status: 400, mcp: -32602, means: 'the request does not have the documented shape; details say where' },
  not_found: { status: 404, mcp: -32602, means: 'there is no such thing, or not for this credential' },
  method_not_allowed: { status: 405, means: 'the path exists, the method does not' },
  request_timeout: { status: 408, retriable: true, means: 'the request did not arrive in time' },
  payload_too_large: { status: 413, means: 'the body is larger than limits.maxRequestBodyBytes' },
  unsupported_media_type: { status: 415, means: 'the body is not application/json' },
  headers_too_large: { status: 431, means: 'the headers of the request are larger than 16 KB' },
  unsupported_stream_mode: { status: 400, means: 'streamMode names a mode that is not served; details.supported lists those that are' },
  idempotency_key_invalid: { status: 400, means: 'Idempotency-Key is empty or longer than 255 characters' },
  idempotency_in_flight: { status: 409, retriable: true, means: 'a request with the same key is still being processed' },
  idempotency_key_mismatch: { status: 409, mcp: -32602, means: 'the key was used before with a different request' },
  run_terminal: { status: 409, means: 'the run has ended' },
  run_state_conflict: { status: 409, retriable: true, means: 'the run kept moving while the request was decided' },
  interrupt_not_found: { status: 404, mcp: -32602, means: 'the node waits for nobody' },
  interrupt_already_resolved: { status: 409, mcp: -32602, means: 'someone answered first, or the run has ended' },
  interrupt_expired: { status: 410, means: 'the time to answer has passed' },
  interrupt_cancelled: { status: 422, mcp: -32602, means: 'the run was cancelled while it waited' },
  interrupt_gone: { status: 410, mcp: -32602, means: 'the run that waited was ended by its parent' },
  interrupt_token_invalid: { status: 404, means: 'nobody minted this token' },
  interrupt_mismatch: { status: 422, means: 'the answer does not carry the correlation the interrupt waits for' },
  approval_rejected: { status: 422, means: 'an approver said no and the graph has no branch for that' },
  clarification_declined: { status: 422, means: 'the person who was asked declined and the graph has no branch for that' },
  untrusted_content_blocks_approval: { status: 422, means: 'untrusted content may not advance an approval' },
  capability_required: { status: 400, means: 'the definition needs something this host does not have; details name it' },
  capability_not_provided: { status: 501, means: 'a node needs a capability this host does not have' },
  pack_peer_dependency_missing: { status: 400, means: 'a node type needs a part of the host that is switched off' },
  rate_limited: { status: 429, retriable: true, means: 'too many requests; Retry-After says when' },
  service_unavailable: { status: 503, retriable: true, means: 'a part of the host is out of reach; nothing was disclosed' },
  internal_error: { status: 500, means: 'a fault of the host; details.correlationId finds it in the logs' },
  fork_point_invalid: { status: 422, means: 'fromSeq lies beyond the log' },
  run_expired: { status: 410, means: 'the history of the run is no longer kept' },
  replay_source_missing: { status: 422, means: 'a replay reached an effect whose outcome was not recorded' },
  unknown_child_workflow: { status: 422, means: 'a sub-workflow names a workflow that is not registered' },
  child_failed: { status: 422, means: 'the run of a sub-workflow did not complete' },
  channel_access_denied: { status: 400, means: 'the node may not write to that channel' },
  webhook_url_rejected: { status: 400, means: 'the webhook target is not one this host may call' },
  subscription_not_found: { status: 404, means: 'there is no such webhook' },
  budget_exhausted: { status: 422, means: 'the run used up its budget' },
  recursion_limit_exceeded: { status: 422, means: 'the run executed more nodes than allowed' },
  run_timeout: { status: 422, means: 'the run took longer than allowed' },
  run_poisoned: { status: 422, means: 'the run was taken over five times without progress and was ended' },
  node_failed: { status: 422, means: 'a node failed without a more specific code' },
  node_outcome_unknown: { status: 422, means: 'a call may or may not have happened before a crash and may not be repeated' },
  expression_failed: { status: 422, means: 'an expression of the definition could not be evaluated' },
  variable_missing: { status: 422, means: 'an input refers to a variable or output that does not exist' },
  host_capability_missing: { status: 422, means: 'the MCP family is switched off' },
  mcp_server_not_found: { status: 422, means: 'no remote MCP server of that id is registered for the tenant' },
  mcp_server_disconnected: { status: 502, retriable: true, means: 'the remote MCP server could not be reached' },
  mcp_tool_not_found: { status: 422, means: 'the remote MCP server has no such tool, or policy does not allow it' },
  mcp_tool_invalid_args: { status: 422, means: 'the remote tool refused the arguments' },
  mcp_tool_invocation_failed: { status: 502, means: 'the remote MCP server answered with a protocol error' },
  mcp_mrtr_rounds_exceeded: { status: 422, means: 'the remote tool kept asking for input' },
  interop_version_unsupported: {
    status: 400,
    mcp: -32022,
    means: 'no protocol revision both sides may use; details.supported lists theirs',
  },
  egress_denied: { status: 403, means: 'the address of the remote server is not one this host may call' },
  invocation_too_late: { status: 422, means: 'the call was asked for by a worker that lost its lease' },
} as const satisfies Record<string, Row>;

export type ErrorCode = keyof typeof ERRORS;
const ROWS: Readonly<Record<string, Row>> = ERRORS;

/** The only shape of a non-2xx body: flat and closed. (error-envelope.schema.json) */
export const ErrorEnvelope = z.strictObject({ error: z.string(), message: z.string(), details: JsonObject.optional() });
export type ErrorEnvelope = z.infer<typeof ErrorEnvelope>;

/**
 * An error of the table. The code is for programs, the message for people and without secrets, the details for both.
 * Anything else that is thrown is a fault of ours and leaves the host as `internal_error`.
 */
export class WopError extends Error {
  override readonly name = 'WopError';
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly details?: JsonObject,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
  get status(): number {
    return ERRORS[this.code].status;
  }
  get retriable(): boolean {
    return ROWS[this.code]?.retriable === true;
  }
  get jsonRpcCode(): number {
    return ROWS[this.code]?.mcp ?? -32603;
  }
  toEnvelope(): ErrorEnvelope {
    return { error: this.code, message: this.message, ...(this.details && { details: this.details }) };
  }
}

export const isErrorCode = (code: unknown): code is ErrorCode => typeof code === 'string' && Object.hasOwn(ERRORS, code);

/** Looks at the shape, so that copies of this module agree. */
export const isWopError = (error: unknown): error is WopError =>
  error instanceof Error && error.name === 'WopError' && isErrorCode((error as WopError).code);

/** The envelope another service answered, as the error it was; unknown codes become `internal_error`. */
export function fromEnvelope(envelope: ErrorEnvelope): WopError {
  return isErrorCode(envelope.error)
    ? new WopError(envelope.error, envelope.message, envelope.details)
    : new WopError('internal_error', 'Another part of the host failed.');
}

/** A `validation_error` out of zod's issues: says where and what, and echoes no value. */
export function validationError(error: z.ZodError, what: string): WopError {
  const issues = error.issues
    .slice(0, 10)
    .map((issue) => ({ path: maskCredentials(issue.path.map(String).join('.')).slice(0, 200), message: issueText(issue) }));
  const first = issues[0];
  const where = first?.path ? ` at "${first.path}"` : '';
  return new WopError('validation_error', `The ${what} is not valid${where}: ${first?.message ?? 'it does not match the schema'}.`, {
    issues,
  });
}

/** zod repeats unknown member names, which may be a secret pasted in the wrong place: name them only when they look harmless. */
function issueText(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'unrecognized_keys') return issue.message.replace(/\.$/, '');
  const keys = issue.keys.map((key) =>
    /^[A-Za-z][A-Za-z0-9_.-]{0,39}$/.test(key) && !looksLikeCredential(key) ? `"${key}"` : 'one whose name is not repeated here',
  );
  return `unknown member ${keys.join(', ')}`;
}
