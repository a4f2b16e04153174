import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { readConfig } from '@isthmus/chassis';
import {
  ALL_SCOPES,
  authz,
  BELLS,
  type Caller,
  CONTRACTS,
  engine,
  type EventType,
  type Idempotency,
  isTerminal,
  type Json,
  type JsonObject,
  mcpClient,
  type RunEvent,
  type RunStatus,
  toRunEvent,
  WopError,
} from '@isthmus/protocol';
import { answer, callerOf, passportIssuer, testConnection, testNats } from '@isthmus/testing';
import { decodeJwt } from 'jose';
import { AppModule } from './app.module.js';
import { Config } from './config.js';
import { edge } from './edge.js';

/** A gateway over real HTTP and real NATS; authz, engine and the rest are answered here, by the terms of their contracts. */
export type Host = Awaited<ReturnType<typeof startHost>>;

type Run = {
  readonly tenant: string;
  readonly events: RunEvent[];
  status: RunStatus;
  readonly variables: Record<string, Json>;
  /** Resolves what the run waits for, if it waits. */
  token?: string;
};
type Counts = { authenticate: number; delegate: number; read: number; heads: number };

const BECOMES: Readonly<Record<string, RunStatus>> = {
  'run.completed': 'completed',
  'run.failed': 'failed',
  'run.cancelled': 'cancelled',
  'run.paused': 'paused',
  'run.resumed': 'running',
};
/** Small, so that a log of a few events has pages. */
const PAGE = 40;

export async function startHost(settings: Record<string, string> = {}) {
  const nats = await testConnection();
  // The gateway asks for passports and verifies none: no public key is answered.
  const issuer = await passportIssuer();
  const revoked = new Map<string, number>();
  const keys = new Map<string, Caller>([
    ['primary', callerOf()],
    ['low', callerOf({ principal: 'low', scopes: ['runs:read'] })],
    ['none', callerOf({ principal: 'none', scopes: [] })],
    ['tenant-b', callerOf({ tenant: 'tenant-b' })],
  ]);
  const counts: Counts = { authenticate: 0, delegate: 0, read: 0, heads: 0 };
  const audited: { type: string; tenant?: string; facts: JsonObject }[] = [];
  const runs = new Map<string, Run>();
  const created = new Map<string, string>();
  const answered = new Map<string, { readonly digest: string; readonly answer: object }>();
  const asked: { subject: string; input: unknown; traceparent?: string }[] = [];
  let epoch = 0;
  let serial = 0;

  const callerFrom = (passport: string | undefined): Caller => (decodeJwt(passport ?? '') as { caller: Caller }).caller;
  const find = (runId: string, passport: string | undefined): Run => {
    const run = runs.get(runId);
    if (!run || run.tenant !== callerFrom(passport).tenant) throw new WopError('not_found', 'There is no such run.');
    return run;
  };

  /** Layer 1, as the engine keeps it. */
  const once = <A extends object>(idempotency: Idempotency | undefined, make: () => A): A & { replayed: boolean } => {
    const key = JSON.stringify([idempotency?.endpoint, idempotency?.keyHash]);
    const known = idempotency && answered.get(key);
    if (known && known.digest !== idempotency.digest) throw new WopError('idempotency_key_mismatch', 'The key was used before.');
    if (known) return { ...(known.answer as A), replayed: true };
    const answer = make();
    if (idempotency) answered.set(key, { digest: idempotency.digest, answer });
    return { ...answer, replayed: false };
  };
  const inState = (run: Run, isGood: boolean): void => {
    if (isTerminal(run.status)) throw new WopError('run_terminal', 'The run has ended.', { runStatus: run.status });
    if (!isGood) throw new WopError('run_state_conflict', 'Not from here.', { runStatus: run.status });
  };
  const open = (runId: string, { token }: Run) => ({
    interruptId: `${runId}.i0`,
    nodeId: 'gate',
    kind: 'external-event',
    key: 'gate',
    payload: { eventType: 'paid', correlation: { id: 1 } },
    interruptToken: token as string,
    callbackUrl: `/v1/interrupts/${token}`,
  });
  const behind = (token: string): [string, Run] => {
    const found = [...runs].find(([, run]) => run.token === token);
    if (!found) throw new WopError('interrupt_token_invalid', 'There is no such interrupt token.');
    if (isTerminal(found[1].status)) throw new WopError('interrupt_gone', 'The run was cancelled while it waited.');
    if (found[1].status !== 'waiting-external') throw new WopError('interrupt_already_resolved', 'Someone has answered already.');
    return found;
  };

  /** What stands in a run's log from now on. `quiet`: the bell is lost on the way. */
  const append = (runId: string, types: readonly EventType[], { quiet = false } = {}): void => {
    const run = runs.get(runId) as Run;
    for (const type of types) {
      run.events.push(toRunEvent(runId, run.events.length, new Date(0), { type, payload: { nodeId: 'n' } }));
      run.status = BECOMES[type] ?? run.status;
    }
    if (!quiet) nats.publish(BELLS.run.subject(runId));
  };
  const makeRun = (tenant = 'tenant-a'): string => {
    serial += 1;
    const runId = `0190a000-0000-7000-8000-${serial.toString(16).padStart(12, '0')}`;
    runs.set(runId, { tenant, events: [], status: 'running', variables: {} });
    append(runId, ['run.started'], { quiet: true });
    return runId;
  };

  const serveAuthz = () => [
    answer(nats, authz.revocationsSince, ({ epoch: since }) => ({
      epoch,
      tenants: [...revoked].filter(([, at]) => since !== undefined && at > since).map(([tenant, at]) => ({ tenant, epoch: at })),
    })),
    answer(nats, authz.authenticate, async ({ credential: { token } }) => {
      counts.authenticate += 1;
      const caller = keys.get(token);
      if (!caller) throw new WopError('unauthenticated', 'Nobody holds this credential.');
      const current = { ...caller, epoch };
      return { token: await issuer.passport(current), caller: current, expiresInMs: 60_000 };
    }),
    answer(nats, authz.delegate, async (wish) => {
      counts.delegate += 1;
      const caller = callerOf({
        tenant: wish.tenant,
        workspace: wish.workspace,
        principal: 'service:gateway',
        kind: 'service',
        scopes: ['runs:read'],
        epoch,
      });
      return { token: await issuer.passport(caller), caller, expiresInMs: 60_000 };
    }),
  ];
  let authzStops = serveAuthz();
  const stops = [
    answer(nats, authz.recordAudit, ({ entries }) => {
      audited.push(...entries);
      return { recorded: entries.length };
    }),
    answer(nats, engine.createRun, (input, { passport, header }) => {
      asked.push({ subject: 'createRun', input, traceparent: header('traceparent') });
      const key = input.idempotency && JSON.stringify([input.idempotency.endpoint, input.idempotency.keyHash]);
      const before = key ? created.get(key) : undefined;
      const runId = before ?? makeRun(callerFrom(passport).tenant);
      if (key) created.set(key, runId);
      return { runId, status: before ? ('completed' as const) : ('running' as const), replayed: before !== undefined };
    }),
    answer(nats, engine.readRun, ({ runId, fromSequence, want }, { passport }) => {
      counts.read += 1;
      const run = find(runId, passport);
      const { events, status } = run;
      const page = events.slice(fromSequence, fromSequence + PAGE);
      const snapshot = {
        runId,
        workflowId: 'w',
        status,
        owner: { tenant: 'tenant-a' },
        nodeStates: {},
        variables: { ...run.variables },
        inputs: {},
        ...(run.token !== undefined && { interrupt: open(runId, run), interrupts: [open(runId, run)] }),
        engineVersion: '1',
        eventLogSchemaVersion: 2,
        workflowRevision: 1,
      };
      return {
        runId,
        workflowId: 'w',
        status,
        head: events.length - 1,
        events: page,
        more: fromSequence + page.length < events.length,
        ...(want.includes('snapshot') && { snapshot }),
      };
    }),
    answer(nats, engine.runHeads, ({ runIds }) => {
      counts.heads += 1;
      return {
        heads: runIds.flatMap((runId) =>
          runs.has(runId) ? [{ runId, head: (runs.get(runId) as Run).events.length - 1, status: (runs.get(runId) as Run).status }] : [],
        ),
      };
    }),
    answer(nats, engine.listRuns, () => ({ runs: [] })),
    answer(nats, engine.cancelRun, ({ runId }, { passport }) => {
      const run = find(runId, passport);
      if (isTerminal(run.status)) return { runId, status: run.status, alreadyTerminal: true, replayed: false };
      append(runId, ['run.cancelled']);
      return { runId, status: 'cancelled' as const, replayed: false };
    }),
    answer(nats, engine.cancelRuns, ({ runIds, idempotency }, { passport }) =>
      once(idempotency, () => ({
        results: runIds.map((runId) => {
          const run = runs.get(runId);
          if (!run || run.tenant !== callerFrom(passport).tenant)
            return { runId, ok: false, error: { error: 'not_found', message: 'There is no such run.' } };
          if (!isTerminal(run.status)) append(runId, ['run.cancelled']);
          return run.status === 'cancelled'
            ? { runId, ok: true, status: run.status }
            : { runId, ok: false, error: { error: 'run_terminal', message: 'The run had ended before.' } };
        }),
      })),
    ),
    answer(nats, engine.pauseRun, (input, { passport }) => {
      asked.push({ subject: 'pauseRun', input });
      const { runId, idempotency } = input;
      return once(idempotency, () => {
        const run = find(runId, passport);
        inState(run, run.status === 'running');
        append(runId, ['run.paused']);
        return { runId, status: 'paused' as const, pausedAt: new Date(0).toISOString() };
      });
    }),
    answer(nats, engine.resumeRun, ({ runId, idempotency }, { passport }) =>
      once(idempotency, () => {
        const run = find(runId, passport);
        inState(run, run.status === 'paused');
        append(runId, ['run.resumed']);
        return { runId, status: 'running' as const, resumedAt: new Date(0).toISOString() };
      }),
    ),
    answer(nats, engine.forkRun, (input, { passport }) => {
      asked.push({ subject: 'forkRun', input });
      const { runId, mode, fromSeq, idempotency } = input;
      return once(idempotency, () => {
        const { tenant, events } = find(runId, passport);
        if (fromSeq > events.length) throw new WopError('fork_point_invalid', 'The log is shorter.', { sourceRunId: runId, fromSeq });
        return { runId: makeRun(tenant), sourceRunId: runId, fromSeq, mode, status: 'running' as const };
      });
    }),
    answer(nats, engine.resolveInterrupt, ({ runId, at, idempotency }, { passport }) =>
      once(idempotency, () => {
        const run = find(runId, passport);
        run.status = 'running';
        append(runId, ['interrupt.resolved']);
        return { runId, nodeId: 'nodeId' in at ? at.nodeId : 'gate', status: run.status };
      }),
    ),
    answer(nats, engine.inspectToken, ({ token }) => {
      const [runId, run] = behind(token);
      return { runId, interrupt: open(runId, run) };
    }),
    answer(nats, engine.resolveToken, ({ token, idempotency }) =>
      once(idempotency, () => {
        const [runId, run] = behind(token);
        run.status = 'running';
        append(runId, ['interrupt.resolved']);
        return { runId, nodeId: 'gate', status: run.status };
      }),
    ),
    answer(nats, engine.getWorkflow, () => {
      throw new WopError('not_found', 'There is no such workflow.');
    }),
    answer(nats, engine.putWorkflow, ({ definition }) => ({
      workflowId: definition.id,
      name: definition.name,
      revision: 1,
      updatedAt: new Date(0).toISOString(),
      created: definition.id === 'new',
    })),
    answer(nats, mcpClient.deleteMount, ({ serverId }) => ({ deleted: serverId === 'known' })),
  ];
  const describing = new Map(
    Object.entries(CONTRACTS).map(([service, { describe }]) => [
      service,
      answer(nats, describe, () => ({ service, version: '1', discovery: { [service]: { supported: true } } })),
    ]),
  );
  await nats.flush();

  const gateway = async (more: Record<string, string> = {}): Promise<Gateway> => {
    const config = readConfig(Config, {
      NATS_URL: testNats(),
      PORT: '0',
      LOG_LEVEL: 'silent',
      PUBLIC_URL: 'http://wop.test',
      WATCH_POLL_MS: '60000',
      ...settings,
      ...more,
    });
    const { app, listen } = await edge(config)(AppModule.forRoot(config), { logger: false, abortOnError: false });
    await listen();
    return { app, url: (await app.getUrl()).replace('[::1]', '127.0.0.1') };
  };
  const first = await gateway();

  return {
    ...first,
    nats,
    issuer,
    keys,
    counts,
    audited,
    asked,
    append,
    makeRun,
    /** The run waits for the outside, behind this token. */
    suspend: (runId: string, token: string): void => {
      const run = runs.get(runId) as Run;
      run.token = token;
      run.status = 'waiting-external';
      append(runId, ['node.suspended']);
    },
    /** State that stands beside the log here: as if folded. */
    variables: (runId: string): Record<string, Json> => (runs.get(runId) as Run).variables,
    /** Another gateway over the same host. Close its app. */
    gateway,
    /** Rights of a tenant changed; `scopes` is what its keys now have, undefined: the keys are gone. */
    revoke: (tenant: string, scopes?: Caller['scopes']): void => {
      epoch += 1;
      revoked.set(tenant, epoch);
      for (const [key, caller] of keys) {
        if (caller.tenant !== tenant) continue;
        if (scopes) keys.set(key, { ...caller, scopes });
        else keys.delete(key);
      }
      nats.publish(BELLS.revoked.subject(tenant));
    },
    /** authz answers nobody any more; what it said before still stands. */
    loseAuthz: (): void => {
      for (const stop of authzStops) stop();
    },
    findAuthz: (): void => {
      authzStops = serveAuthz();
    },
    stopDescribing: (service: string): void => describing.get(service)?.(),
    as: (key: string, more: Record<string, string> = {}) => ({ authorization: `Bearer ${key}`, ...more }),
    close: async () => {
      await first.app.close();
      for (const stop of [...stops, ...authzStops, ...describing.values()]) stop();
      await nats.close();
    },
  };
}

export type Gateway = { readonly app: NestFastifyApplication; readonly url: string };
export const everyScope = ALL_SCOPES;

export type Frame = { readonly id: number; readonly event: string; readonly data: RunEvent };

/** An SSE client that keeps what it was sent. `ended` resolves when the server ends the stream. */
export async function openStream(url: string, headers: Record<string, string>) {
  const stop = new AbortController();
  const response = await fetch(url, { headers: { accept: 'text/event-stream', ...headers }, signal: stop.signal });
  const frames: Frame[] = [];
  const read = async (): Promise<void> => {
    let text = '';
    for await (const chunk of (response.body as ReadableStream<Uint8Array>).pipeThrough(
      new TextDecoderStream() as never,
    ) as unknown as AsyncIterable<string>) {
      text += chunk;
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const lines = new Map(
          text
            .slice(0, end)
            .split('\n')
            .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()] as const),
        );
        text = text.slice(end + 2);
        if (lines.has('id'))
          frames.push({ id: Number(lines.get('id')), event: lines.get('event') ?? '', data: JSON.parse(lines.get('data') ?? 'null') });
      }
    }
  };
  const ended = response.ok
    ? read().then(
        () => 'ended' as const,
        () => 'broken' as const,
      )
    : Promise.resolve('ended' as const);
  return { response, frames, ended, leave: () => stop.abort() };
}
