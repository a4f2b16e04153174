export const PREFERRED_REVISION = '2026-07-28';

/** The MCP revisions this mount serves: what discover, -32022 and the discovery document all say. */
export const REVISIONS: readonly string[] = [PREFERRED_REVISION];

/** Self-reported, for people: never a reason to behave differently. (spec/mcp.md §1.2) */
export const SERVER_INFO = { name: 'isthmus', title: 'Isthmus', version: '0.0.0' } as const;
