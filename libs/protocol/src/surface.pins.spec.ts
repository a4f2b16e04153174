// What others can see, as literals. A change here is a change of somebody else's program: nothing in this file is derived.
import { describe, expect, it } from '@jest/globals';
import {
  ALL_SCOPES,
  APPROVAL_ACTIONS,
  BELLS,
  CONTRACTS,
  type Contract,
  ENGINE_VERSION,
  ERRORS,
  EVENT_LOG_SCHEMA_VERSION,
  EVENTS,
  EXCHANGE,
  HEADERS,
  INTERRUPTS,
  isTerminal,
  LIMITS,
  MAX_JSON_DEPTH,
  MESSAGE_BUDGET_BYTES,
  PASSPORT,
  ROUTES,
  type Route,
  RUN_STATUSES,
  TERMINAL_EVENTS,
  TRIGGER_RULES,
  WopError,
  type ErrorCode,
} from './index.js';

const entries = <T>(table: Readonly<Record<string, T>>): [string, T][] => Object.entries(table);

describe('what a client of the REST interface sees', () => {
  it('routes: method, path, status of success, access', () => {
    expect(
      (Object.values(ROUTES) as Route[]).map(
        (route) =>
          `${route.method} ${route.path} ${route.success} ${route.access === 'public' ? 'public' : route.access.join('+')}${route.idempotent ? ' idempotent' : ''}`,
      ),
    ).toEqual([
      'GET /.well-known/openwop 200 public',
      'GET /v1/openapi.json 200 public',
      'GET /v1/workflows/{workflowId} 200 manifest:read',
      'POST /v1/runs 201 runs:create idempotent',
      'GET /v1/runs/{runId} 200 runs:read',
      'GET /v1/runs/{runId}/events 200 runs:read',
      'GET /v1/runs/{runId}/events/poll 200 runs:read',
      'POST /v1/runs/{runId}/cancel 200 runs:cancel idempotent',
      'POST /v1/runs/{runId}/interrupts/{nodeId} 200 approvals:respond idempotent',
      'POST /v1/runs:bulk-cancel 200 runs:cancel idempotent',
      'POST /v1/runs/{runId}:pause 202 runs:cancel idempotent',
      'POST /v1/runs/{runId}:resume 202 runs:cancel idempotent',
      'POST /v1/runs/{runId}:fork 201 runs:create+runs:read idempotent',
      'GET /v1/runs/{runId}:diff 200 runs:read',
      'GET /v1/runs/{runId}/debug-bundle 200 runs:read',
      'GET /v1/interrupts/{token} 200 public',
      'POST /v1/interrupts/{token} 200 public idempotent',
      'GET /v1/audit/verify 200 audit:read',
      'POST /v1/webhooks 201 webhooks:manage idempotent',
      'DELETE /v1/webhooks/{webhookId} 204 webhooks:manage',
      'PUT /v1/host/isthmus/workflows/{workflowId} 200 manifest:write',
      'GET /v1/host/isthmus/workflows/{workflowId} 200 manifest:read',
      'GET /v1/host/isthmus/workflows 200 manifest:read',
      'GET /v1/host/isthmus/runs 200 runs:read',
      'PUT /v1/host/isthmus/mounts/{serverId} 200 mcp:manage',
      'GET /v1/host/isthmus/mounts/{serverId} 200 mcp:read',
      'GET /v1/host/isthmus/mounts 200 mcp:read',
      'DELETE /v1/host/isthmus/mounts/{serverId} 204 mcp:manage',
      'GET /v1/host/isthmus/mounts/{serverId}/tools 200 mcp:read',
    ]);
  });

  it('operation ids, each once', () => {
    const ids = Object.values(ROUTES).map(({ operationId }) => operationId);
    expect(ids).toEqual([
      'getDiscovery',
      'getOpenApi',
      'getWorkflow',
      'createRun',
      'getRun',
      'streamRunEvents',
      'pollRunEvents',
      'cancelRun',
      'resolveInterrupt',
      'bulkCancelRuns',
      'pauseRun',
      'resumeRun',
      'forkRun',
      'diffRuns',
      'getDebugBundle',
      'inspectInterrupt',
      'resolveInterruptByToken',
      'verifyAudit',
      'registerWebhook',
      'unregisterWebhook',
      'putHostWorkflow',
      'getHostWorkflow',
      'listHostWorkflows',
      'listHostRuns',
      'putHostMount',
      'getHostMount',
      'listHostMounts',
      'deleteHostMount',
      'listHostMountTools',
    ]);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('every route with the id of a thing in its path belongs to a tenant, so that the wrong tenant is tried on it', () => {
    // Who holds a token needs no tenant: it is the credential.
    const named = entries<Route>(ROUTES).filter(
      ([, route]) => route.path.includes('{') && !route.path.includes('{token}') && route.method !== 'PUT',
    );
    expect(named.filter(([, route]) => route.holds !== 'tenant')).toEqual([]);
  });

  it('error codes and their statuses', () => {
    expect(Object.fromEntries(entries(ERRORS).map(([code, { status }]) => [code, status]))).toEqual({
      unauthenticated: 401,
      key_expired: 401,
      key_revoked: 401,
      forbidden: 403,
      run_forbidden: 403,
      workspace_membership_required: 403,
      validation_error: 400,
      not_found: 404,
      method_not_allowed: 405,
      request_timeout: 408,
      payload_too_large: 413,
      unsupported_media_type: 415,
      headers_too_large: 431,
      unsupported_stream_mode: 400,
      idempotency_key_invalid: 400,
      idempotency_in_flight: 409,
      idempotency_key_mismatch: 409,
      run_terminal: 409,
      run_state_conflict: 409,
      interrupt_not_found: 404,
      interrupt_already_resolved: 409,
      interrupt_expired: 410,
      interrupt_cancelled: 422,
      interrupt_gone: 410,
      interrupt_token_invalid: 404,
      interrupt_mismatch: 422,
      approval_rejected: 422,
      clarification_declined: 422,
      untrusted_content_blocks_approval: 422,
      capability_required: 400,
      capability_not_provided: 501,
      pack_peer_dependency_missing: 400,
      rate_limited: 429,
      service_unavailable: 503,
      internal_error: 500,
      fork_point_invalid: 422,
      run_expired: 410,
      replay_source_missing: 422,
      unknown_child_workflow: 422,
      child_failed: 422,
      channel_access_denied: 400,
      budget_exhausted: 422,
      webhook_url_rejected: 400,
      subscription_not_found: 404,
      recursion_limit_exceeded: 422,
      run_timeout: 422,
      run_poisoned: 422,
      node_failed: 422,
      node_outcome_unknown: 422,
      expression_failed: 422,
      variable_missing: 422,
      host_capability_missing: 422,
      mcp_server_not_found: 422,
      mcp_server_disconnected: 502,
      mcp_tool_not_found: 422,
      mcp_tool_invalid_args: 422,
      mcp_tool_invocation_failed: 502,
      mcp_mrtr_rounds_exceeded: 422,
      interop_version_unsupported: 400,
      egress_denied: 403,
      invocation_too_late: 422,
    });
  });

  it('which errors may be sent again', () => {
    expect(
      entries(ERRORS)
        .filter(([code]) => new WopError(code as ErrorCode, '').retriable)
        .map(([code]) => code),
    ).toEqual([
      'request_timeout',
      'idempotency_in_flight',
      'run_state_conflict',
      'rate_limited',
      'service_unavailable',
      'mcp_server_disconnected',
    ]);
  });

  it('scopes', () => {
    expect(ALL_SCOPES).toEqual([
      'manifest:read',
      'manifest:write',
      'runs:create',
      'runs:read',
      'runs:cancel',
      'artifacts:read',
      'approvals:respond',
      'webhooks:manage',
      'packs:publish',
      'packs:yank',
      'packs:yank-revert',
      'audit:read',
      'workspace:read',
      'workspace:write',
      'mcp:read',
      'mcp:manage',
      'mcp:invoke',
    ]);
  });

  it('statuses of a run, and which are its end', () => {
    expect(RUN_STATUSES).toEqual([
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
    ]);
    expect(RUN_STATUSES.filter(isTerminal)).toEqual(['completed', 'failed', 'cancelled']);
  });

  it('event types, and whether the mode `updates` shows them', () => {
    expect(Object.fromEntries(entries(EVENTS).map(([type, { updates }]) => [type, updates]))).toEqual({
      'run.started': true,
      'run.completed': true,
      'run.failed': true,
      'run.cancelled': true,
      'run.paused': true,
      'run.resumed': true,
      'node.started': false,
      'node.completed': true,
      'node.failed': true,
      'node.skipped': true,
      'node.suspended': true,
      'node.resumed': true,
      'node.retried': false,
      'node.dispatched': true,
      'interrupt.requested': true,
      'interrupt.resolved': true,
      'approval.requested': true,
      'approval.received': true,
      'approval.granted': true,
      'approval.rejected': true,
      'approval.overridden': true,
      'clarification.requested': true,
      'clarification.resolved': true,
      'agent.toolCalled': true,
      'agent.toolReturned': true,
      'variable.changed': false,
      'channel.written': false,
      'replay.diverged': false,
      'cap.breached': true,
    });
    expect([...TERMINAL_EVENTS]).toEqual(['run.completed', 'run.failed', 'run.cancelled']);
  });

  it('kinds of interrupts, the status of a run that waits for one, and how approvals are answered', () => {
    expect(Object.fromEntries(entries(INTERRUPTS).map(([kind, { status }]) => [kind, status]))).toEqual({
      approval: 'waiting-approval',
      clarification: 'waiting-input',
      'external-event': 'waiting-external',
      custom: 'waiting-input',
      'low-confidence': 'waiting-approval',
    });
    expect(APPROVAL_ACTIONS).toEqual(['accept', 'reject', 'refine', 'edit-accept', 'ask']);
  });

  it('trigger rules', () => {
    expect(TRIGGER_RULES).toEqual(['all_success', 'any_success', 'all_complete', 'none_failed', 'any_failed']);
  });

  it('limits and versions', () => {
    expect(LIMITS).toEqual({
      clarificationRounds: 3,
      schemaRounds: 2,
      envelopesPerTurn: 5,
      maxNodeExecutions: 1_000,
      maxRunDurationMs: 2_592_000_000,
      maxRequestBodyBytes: 393_216,
    });
    expect([ENGINE_VERSION, EVENT_LOG_SCHEMA_VERSION, MAX_JSON_DEPTH]).toEqual([1, 2, 64]);
  });
});

describe('what a client of the MCP mount sees', () => {
  it('JSON-RPC codes of errors that are not internal', () => {
    const codes = entries(ERRORS).map(([code]) => [code, new WopError(code as ErrorCode, '').jsonRpcCode] as const);
    expect(Object.fromEntries(codes.filter(([, number]) => number !== -32603))).toEqual({
      validation_error: -32602,
      not_found: -32602,
      idempotency_key_mismatch: -32602,
      interrupt_not_found: -32602,
      interrupt_already_resolved: -32602,
      interrupt_cancelled: -32602,
      interrupt_gone: -32602,
      interop_version_unsupported: -32022,
    });
  });
});

describe('what services of the previous version see', () => {
  it('contracts: subject, and who may ask', () => {
    const contracts = Object.values(CONTRACTS).flatMap((service) => Object.values(service) as Contract[]);
    expect(Object.fromEntries(contracts.map(({ subject, access }) => [subject, access]))).toEqual({
      'wop.v1.authz.caller.authenticate': 'internal',
      'wop.v1.authz.caller.delegate': 'internal',
      'wop.v1.authz.key.public': 'internal',
      'wop.v1.authz.revocation.since': 'internal',
      'wop.v1.authz.audit.record': 'internal',
      'wop.v1.authz.audit.verify': ['audit:read'],
      'wop.v1.authz.service.describe': 'internal',
      'wop.v1.engine.workflow.put': ['manifest:write'],
      'wop.v1.engine.workflow.get': ['manifest:read'],
      'wop.v1.engine.workflow.list': ['manifest:read'],
      'wop.v1.engine.exposure.list': [],
      'wop.v1.engine.run.create': ['runs:create'],
      'wop.v1.engine.run.read': ['runs:read'],
      'wop.v1.engine.run.heads': 'internal',
      'wop.v1.engine.run.list': ['runs:read'],
      'wop.v1.engine.run.cancel': ['runs:cancel'],
      'wop.v1.engine.runs.cancel': ['runs:cancel'],
      'wop.v1.engine.run.pause': ['runs:cancel'],
      'wop.v1.engine.run.resume': ['runs:cancel'],
      'wop.v1.engine.run.fork': ['runs:create', 'runs:read'],
      'wop.v1.engine.interrupt.inspect': 'internal',
      'wop.v1.engine.interrupt.token': 'internal',
      'wop.v1.engine.interrupt.resolve': ['approvals:respond'],
      'wop.v1.engine.invocation.claim': ['runs:create'],
      'wop.v1.engine.service.describe': 'internal',
      'wop.v1.engine.webhook.register': ['webhooks:manage'],
      'wop.v1.engine.webhook.remove': ['webhooks:manage'],
      'wop.v1.engine.webhook.list': ['webhooks:manage'],
      'wop.v1.mcp-client.mount.put': ['mcp:manage'],
      'wop.v1.mcp-client.mount.get': ['mcp:read'],
      'wop.v1.mcp-client.mount.list': ['mcp:read'],
      'wop.v1.mcp-client.mount.delete': ['mcp:manage'],
      'wop.v1.mcp-client.tool.list': ['mcp:read'],
      'wop.v1.mcp-client.tool.call': ['mcp:invoke'],
      'wop.v1.mcp-client.seam.call': ['mcp:invoke'],
      'wop.v1.mcp-client.service.describe': 'internal',
      'wop.v1.mcp-server.service.describe': 'internal',
    });
  });

  it('each subject names the service that answers it', () => {
    for (const [service, contracts] of entries(CONTRACTS as Record<string, Record<string, Contract>>)) {
      for (const contract of Object.values(contracts)) {
        expect(contract.subject).toMatch(new RegExp(`^wop\\.v1\\.${service}\\.[a-z]+\\.[a-z]+$`));
        expect(contract.service).toBe(service);
      }
    }
  });

  it('bells', () => {
    expect(BELLS.run.subject('r1')).toBe('wop.v1.bell.run.r1');
    expect(BELLS.work.subject('r1')).toBe('wop.v1.bell.work.r1');
    expect(BELLS.abandon.subject('i1')).toBe('wop.v1.bell.abandon.i1');
    expect(BELLS.revoked.subject('acme')).toBe('wop.v1.bell.revoked.acme');
    expect(BELLS.catalog.subject('acme')).toBe('wop.v1.bell.catalog.acme');
    expect(Object.values(BELLS).map(({ all }) => all)).toEqual([
      'wop.v1.bell.run.*',
      'wop.v1.bell.work.*',
      'wop.v1.bell.abandon.*',
      'wop.v1.bell.revoked.*',
      'wop.v1.bell.catalog.*',
    ]);
  });

  it('a tenant is one token of a subject, whatever it is called, and no two share one', () => {
    const subjects = ['a.b', 'a*b', 'a>b', 'a b', 'a~b', 'a~2e~b', 'a\u02eb', 'ä', '😀', 'a_b'].map((tenant) =>
      BELLS.revoked.subject(tenant),
    );
    for (const subject of subjects) expect(subject).toMatch(/^wop\.v1\.bell\.revoked\.[A-Za-z0-9_~-]+$/);
    expect(new Set(subjects).size).toBe(subjects.length);
  });

  it('headers, the tunnel, the passport, and how big a message may be', () => {
    expect(HEADERS).toEqual({
      passport: 'Wop-Passport',
      deadline: 'Wop-Deadline',
      heartbeat: 'Wop-Heartbeat',
      traceparent: 'traceparent',
      tracestate: 'tracestate',
    });
    expect([EXCHANGE.open('default'), EXCHANGE.queue('default')]).toEqual(['wop.v1.mcp-server.exchange.default', 'mcp-server.default']);
    expect(PASSPORT).toEqual({ issuer: 'isthmus-authz', audience: 'isthmus', algorithm: 'EdDSA', lifetimeMs: 60_000 });
    expect(MESSAGE_BUDGET_BYTES).toBe(524_288);
  });
});
