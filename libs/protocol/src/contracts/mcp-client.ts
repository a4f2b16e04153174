import { z } from 'zod';
import { contract } from '../contract.js';
import { Description } from '../capabilities.js';
import { ServerId } from '../ids.js';
import { JsonObject } from '../json.js';

const Revision = z.string().regex(/^\d{4}-\d{2}-\d{2}$/, 'must be a date such as 2026-07-28');

/**
 * Which MCP revisions a remote server may be spoken to in. `allow` is the whole list, preferred first; a server that
 * offers none of them fails with `interop_version_unsupported`, it is never spoken to in another. Absent: only 2026-07-28.
 */
export const VersionPolicy = z.strictObject({ allow: z.array(Revision).min(1).max(8).default(['2026-07-28']) });
export type VersionPolicy = z.infer<typeof VersionPolicy>;

/** A remote MCP server as a tenant registers it. */
export const MountSpec = z.strictObject({
  url: z.url({ protocol: /^https?$/ }).max(2_048),
  transport: z.enum(['streamable-http']).default('streamable-http'),
  versionPolicy: VersionPolicy.default({ allow: ['2026-07-28'] }),
  /** Names of tools that workflows may call; absent: every tool the server lists. */
  toolAllowlist: z.array(z.string().min(1).max(256)).max(1_000).optional(),
  /**
   * May a call whose outcome is unknown after a crash be sent again with the same logical invocation id: `never`, when the
   * server's `idempotentHint` says so (`hinted`: the mount trusts the hint), or `always`. Absent: the operator's default.
   */
  repeatUnknown: z.enum(['never', 'hinted', 'always']).optional(),
  description: z.string().max(1_000).optional(),
});
export type MountSpec = z.infer<typeof MountSpec>;

export const Mount = MountSpec.extend({ serverId: ServerId, createdAt: z.string(), updatedAt: z.string() });
export type Mount = z.infer<typeof Mount>;

/** What came back from a remote tool. `result` is the CallToolResult as the server sent it: untrusted. */
export const ToolReply = z.discriminatedUnion('is', [
  z.strictObject({ is: z.literal('complete'), result: JsonObject, isError: z.boolean(), negotiatedVersion: z.string() }),
  z.strictObject({
    is: z.literal('input_required'),
    inputRequests: z.record(z.string(), JsonObject),
    /** Opaque, echoed back byte for byte. */
    requestState: z.string().optional(),
    negotiatedVersion: z.string(),
  }),
]);
export type ToolReply = z.infer<typeof ToolReply>;

/** Contracts of mcp-client: remote MCP servers, mounted per tenant. */
export const mcpClient = {
  putMount: contract('mcp-client.mount.put', {
    access: ['mcp:manage'],
    input: z.strictObject({ serverId: ServerId, spec: MountSpec }),
    output: z.strictObject({ mount: Mount, created: z.boolean() }),
  }),
  getMount: contract('mcp-client.mount.get', { access: ['mcp:read'], input: z.strictObject({ serverId: ServerId }), output: Mount }),
  listMounts: contract('mcp-client.mount.list', {
    access: ['mcp:read'],
    input: z.strictObject({ cursor: z.string().optional(), limit: z.int().min(1).max(500).default(100) }),
    output: z.strictObject({ mounts: z.array(Mount), nextCursor: z.string().optional() }),
  }),
  deleteMount: contract('mcp-client.mount.delete', {
    access: ['mcp:manage'],
    input: z.strictObject({ serverId: ServerId }),
    output: z.strictObject({ deleted: z.boolean() }),
  }),

  /** The tools of a remote server, as it lists them. Errors as for `callTool`. */
  listTools: contract('mcp-client.tool.list', {
    access: ['mcp:read'],
    deadlineMs: 35_000,
    input: z.strictObject({ serverId: ServerId, timeoutMs: z.int().min(100).max(30_000).default(30_000) }),
    output: z.strictObject({ tools: z.array(JsonObject), negotiatedVersion: z.string() }),
  }),
  /**
   * One round of a tool call. The logical invocation id goes to the server as `Idempotency-Key` header and in `_meta`; it is
   * the same for every round and every retry of the call. `startWithinMs` is what is left of the asker's lease: a call that
   * cannot be sent before is refused with `invocation_too_late`. `repeat` says that an earlier attempt of this round may have
   * been sent: it is sent again only where the mount's `repeatUnknown` allows it, else `node_outcome_unknown`.
   * The bell `abandon` with the invocation id cancels it at the remote server.
   * `mcp_server_disconnected` says in `details.sent` whether the call may have been received: then its outcome is unknown.
   * Errors: mcp_server_not_found, mcp_server_disconnected, mcp_tool_not_found, mcp_tool_invocation_failed,
   * interop_version_unsupported, egress_denied, invocation_too_late.
   */
  callTool: contract('mcp-client.tool.call', {
    access: ['mcp:invoke'],
    deadlineMs: 305_000,
    heartbeat: true,
    input: z.strictObject({
      serverId: ServerId,
      toolName: z.string().min(1).max(256),
      arguments: JsonObject,
      invocationId: z.string().min(16).max(128),
      runId: z.string(),
      round: z.int().min(0),
      repeat: z.boolean().default(false),
      requestState: z.string().optional(),
      inputResponses: z.record(z.string(), JsonObject).optional(),
      startWithinMs: z.int().min(0),
      timeoutMs: z.int().min(100).max(300_000).default(30_000),
    }),
    output: ToolReply,
  }),
  /**
   * One round of a tool call at an address that is no mount, over the same way as `callTool`. For test seams: refused with
   * `not_found` unless the process was started with them on. Loopback addresses may be called here besides. `revision` is the
   * only one that is tried. Errors as for `callTool`. (spec/seams.md §3, §8)
   */
  callEndpoint: contract('mcp-client.seam.call', {
    access: ['mcp:invoke'],
    deadlineMs: 35_000,
    heartbeat: true,
    input: z.strictObject({
      url: MountSpec.shape.url,
      revision: Revision.optional(),
      toolName: z.string().min(1).max(256),
      arguments: JsonObject,
      invocationId: z.string().min(16).max(128),
      round: z.int().min(0),
      requestState: z.string().optional(),
      inputResponses: z.record(z.string(), JsonObject).optional(),
    }),
    output: ToolReply,
  }),
  describe: contract('mcp-client.service.describe', { access: 'internal', input: z.strictObject({}), output: Description }),
};
