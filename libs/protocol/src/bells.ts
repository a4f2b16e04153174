/**
 * Bells: content-free notes over core NATS. Who cares reads the log; a lost bell costs a delay, never a fact.
 * Subjects carry the id, bodies are empty.
 */
export const BELLS = {
  /** The log of a run grew. */
  run: { subject: (runId: string) => `wop.v1.bell.run.${runId}`, all: 'wop.v1.bell.run.*' },
  /** A run may have something to do for whoever drives it. */
  work: { subject: (runId: string) => `wop.v1.bell.work.${runId}`, all: 'wop.v1.bell.work.*' },
  /** Whoever works on this invocation should stop: its run was cancelled. */
  abandon: { subject: (invocationId: string) => `wop.v1.bell.abandon.${invocationId}`, all: 'wop.v1.bell.abandon.*' },
  /** Keys, scopes or memberships of a tenant changed. */
  revoked: { subject: (tenant: string) => `wop.v1.bell.revoked.${token(tenant)}`, all: 'wop.v1.bell.revoked.*' },
  /** What a tenant exposes over MCP changed. */
  catalog: { subject: (tenant: string) => `wop.v1.bell.catalog.${token(tenant)}`, all: 'wop.v1.bell.catalog.*' },
} as const;

/** A tenant id as one NATS subject token. */
const token = (text: string): string => text.replace(/[^A-Za-z0-9_-]/g, (char) => `~${char.codePointAt(0)?.toString(16)}~`);
