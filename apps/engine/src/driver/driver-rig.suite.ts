import { authz, mcpClient, type Output, type Parsed, type RunEvent, TERMINAL_EVENTS, type WopError } from '@isthmus/protocol';
import { answer, callerOf } from '@isthmus/testing';
import { expect } from '@jest/globals';
import pg from 'pg';
import { EngineRig } from '../engine-rig.suite.js';

type Call = Parsed<typeof mcpClient.callTool>;
type Reply = Output<typeof mcpClient.callTool>;

/** Remote tools that answer when the test says so. */
export class Tools {
  readonly calls: Call[] = [];
  private readonly waiting: ((reply: Reply) => void)[] = [];
  private readonly refusals: WopError[] = [];
  private readonly stops: (() => void)[];

  constructor(rig: EngineRig) {
    this.stops = [
      answer(rig.connection, mcpClient.callTool, (call) => {
        this.calls.push(call);
        const refusal = this.refusals.shift();
        if (refusal) throw refusal;
        return new Promise<Reply>((resolve) => this.waiting.push(resolve));
      }),
      answer(rig.connection, authz.delegate, async (asked) => {
        const caller = callerOf(
          'principal' in asked
            ? { tenant: asked.tenant, workspace: asked.workspace, principal: asked.principal }
            : { tenant: asked.tenant },
        );
        return { token: await rig.issuer.passport(caller), caller, expiresInMs: 60_000 };
      }),
      answer(rig.connection, authz.recordAudit, ({ entries }) => ({ recorded: entries.length })),
    ];
  }

  /** The next call is refused. */
  refuseOnce(error: WopError): void {
    this.refusals.push(error);
  }

  /** Every call that waits is answered. */
  finish(text = 'done'): void {
    for (const resolve of this.waiting.splice(0))
      resolve({ is: 'complete', result: { content: [{ type: 'text', text }] }, isError: false, negotiatedVersion: '2026-07-28' });
  }

  stop(): void {
    this.finish();
    for (const stop of this.stops) stop();
  }
}

export const toolNode = (id: string) => ({
  id,
  typeId: 'core.openwop.mcp.invoke-tool',
  config: { serverId: 'remote', toolName: 'slow', timeoutMs: 60_000 },
});

/** The database as its administrator sees it. */
export async function administrator(rig: EngineRig): Promise<pg.Pool> {
  const pool = new pg.Pool({ connectionString: rig.database.adminUrl, max: 4 });
  pool.on('error', () => undefined);
  return pool;
}

/** A log is whole: from run.started, without a gap, with one terminal fact, the last; no node begins or ends twice. */
export function expectWhole(events: readonly RunEvent[] | undefined): void {
  const log = events ?? [];
  expect(log[0]?.type).toBe('run.started');
  expect(log.map(({ sequence }) => sequence)).toEqual(log.map((_, index) => index));
  expect(log.filter(({ type }) => TERMINAL_EVENTS.has(type))).toHaveLength(1);
  expect(TERMINAL_EVENTS.has(log.at(-1)?.type ?? '')).toBe(true);
  for (const once of [['node.started'], ['node.completed', 'node.failed', 'node.skipped']]) {
    const nodes = log.flatMap(({ type, nodeId }) => (once.includes(type) && nodeId ? [nodeId] : []));
    expect(nodes).toEqual([...new Set(nodes)]);
  }
}
