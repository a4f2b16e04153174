import type { Description } from '@isthmus/protocol';
import { PREFERRED_REVISION, REVISIONS, SERVER_INFO } from './revisions.js';

/** What mcp-server honestly does; the gateway, which knows its own address, adds `serverUrls`. (spec/authz.md §7.1) */
export const DESCRIPTION: Description = {
  service: 'mcp-server',
  version: SERVER_INFO.version,
  discovery: {
    mcp: {
      supported: true,
      protocolVersions: REVISIONS,
      preferredVersion: PREFERRED_REVISION,
      profiles: ['mcp-2026-07-28'],
      features: ['server-discover', 'mrtr', 'cacheable-lists'],
      serverMount: { supported: true, transports: ['streamable-http'], samplingBridge: false, elicitationBridge: true },
    },
  },
};
