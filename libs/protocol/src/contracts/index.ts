import { authz } from './authz.js';
import { engine } from './engine.js';
import { mcpClient } from './mcp-client.js';
import { mcpServer } from './mcp-server.js';
import { webhooks } from './webhooks.js';

/** Every contract by service: what each must handle, who may publish what, and the fixtures of older messages derive from it. */
export const CONTRACTS = { authz, engine: { ...engine, ...webhooks }, 'mcp-client': mcpClient, 'mcp-server': mcpServer } as const;
