import { type Description, ENGINE_VERSION, EVENT_LOG_SCHEMA_VERSION, LIMITS } from '@isthmus/protocol';
import type { Config } from '../config.js';
import { RETRY_AFTER_S } from '../http/inflight.js';
import { MCP_PATH } from '../http/known-paths.js';

export const IMPLEMENTATION = { name: 'isthmus', version: '0.1.0', vendor: 'isthmus' } as const;

/**
 * What the edge itself answers for. No envelope kinds: who lists one lists all four and must accept them, and there is no node
 * here yet that speaks to a model. (wire §3.2)
 */
export const ownDescription = ({
  PUBLIC_URL,
  MAX_INFLIGHT,
  FIXTURES,
}: Pick<Config, 'PUBLIC_URL' | 'MAX_INFLIGHT' | 'FIXTURES'>): Description => ({
  service: 'gateway',
  version: IMPLEMENTATION.version,
  discovery: {
    protocolVersion: '1.0',
    protocolVersions: ['1.0'],
    supportedEnvelopes: [],
    schemaVersions: {},
    limits: LIMITS,
    implementation: IMPLEMENTATION,
    engineVersion: ENGINE_VERSION,
    eventLogSchemaVersion: EVENT_LOG_SCHEMA_VERSION,
    supportedTransports: ['rest', 'mcp'],
    restTransport: { conditionalRunGet: true },
    debugBundle: { supported: true },
    production: {
      backpressure: { supported: true, inflightCap: MAX_INFLIGHT, retryAfterSeconds: RETRY_AFTER_S },
      debugBundle: { supported: true, truncationMetadata: true },
    },
    ...(FIXTURES.length > 0 && { fixtures: FIXTURES }),
    mcp: { serverUrls: [`${PUBLIC_URL}${MCP_PATH}`] },
  },
});
