import { z } from 'zod';

/**
 * Every named permission. No scope implies another. (auth.md, minimum vocabulary; the `manifest:write` and `mcp:*` rows
 * are ours, for the host routes.)
 */
export const SCOPES = {
  'manifest:read': 'read workflow definitions',
  'manifest:write': 'register and replace workflow definitions',
  'runs:create': 'start runs, also as MCP tools',
  'runs:read': 'read runs and their events',
  'runs:cancel': 'cancel runs',
  'artifacts:read': 'read artifacts of runs',
  'approvals:respond': 'answer interrupts',
  'webhooks:manage': 'register and remove webhooks',
  'packs:publish': 'publish node packs',
  'packs:yank': 'yank node packs',
  'packs:yank-revert': 'revert the yank of a node pack',
  'audit:read': 'read the audit log',
  'workspace:read': 'read workspace files',
  'workspace:write': 'write workspace files',
  'mcp:read': 'list remote MCP servers and their tools',
  'mcp:manage': 'register and remove remote MCP servers',
  'mcp:invoke': 'let a workflow call a remote MCP tool',
} as const;

export type Scope = keyof typeof SCOPES;
export const ALL_SCOPES = Object.keys(SCOPES) as readonly Scope[];
export const Scope = z.custom<Scope>((value) => typeof value === 'string' && Object.hasOwn(SCOPES, value), 'is not a known scope');
