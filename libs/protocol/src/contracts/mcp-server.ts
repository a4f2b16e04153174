import { z } from 'zod';
import { contract } from '../contract.js';
import { Description } from '../capabilities.js';

/** Contracts of mcp-server. Requests themselves come through the exchange tunnel (`EXCHANGE`), not through a contract. */
export const mcpServer = {
  describe: contract('mcp-server.service.describe', { access: 'internal', input: z.strictObject({}), output: Description }),
};

/** Subjects of the tunnel that carries one HTTP exchange to a replica of a pool. */
export const EXCHANGE = {
  open: (pool: string) => `wop.v1.mcp-server.exchange.${pool}`,
  queue: (pool: string) => `mcp-server.${pool}`,
} as const;
