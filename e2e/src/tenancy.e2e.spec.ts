import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Route, ROUTES } from '@isthmus/protocol';
import { type ModernPeer, modernPeer, until } from '@isthmus/testing';
import { type Answer, Client, gather, type Sent } from './client.js';
import { call, chain, gate, noop, tool } from './make.js';
import { Mount, type Result } from './mcp.js';
import { administer, audited, isUnbroken, keyIdOf, query, rowCounts } from './operator.js';
import { type Stack, START_MS, startStack } from './stack.js';

let stack: Stack;
let peer: ModernPeer;
let alice: Client;
let bob: Client;
let low: Client;
/** What is Alice's, and what names it in addresses. */
let hers: Readonly<Record<string, string>>;
let asked: Result;

const DEPLOY = chain('plans', [tool('deploy', { env: { type: 'string' } }), gate()]);

beforeAll(async () => {
  [stack, peer] = await Promise.all([startStack(), modernPeer()]);
  [alice, bob, low] = [stack.keys.primary, stack.keys.tenantB, stack.keys.lowScope].map((key) => new Client(stack.baseUrl, key)) as [
    Client,
    Client,
    Client,
  ];
  await alice.register(DEPLOY);
  await alice.mount('vault', { url: peer.url });
  const runId = await alice.start('plans', { secret: 'of acme' });
  await alice.waiting(runId);
  asked = (await new Mount(stack.mcpUrl, stack.keys.primary).call('deploy', { env: 'prod' })).result as Result;
  await query(
    stack,
    `insert into engine.webhooks values ('whk-1', 'acme', 'main', 'user-alice', 'https://hooks.example.com/', '{replay.diverged}', null, 'a-secret-of-hers', now())`,
  );
  await alice.run(runId); // the first who looks at an open interrupt has the key made that signs its tokens
  hers = { workflowId: 'plans', serverId: 'vault', nodeId: 'gate', runId, webhookId: 'whk-1' };
}, START_MS);
afterAll(async () => {
  await Promise.all([peer?.close(), stack?.stop()]);
}, 60_000);

const routes = Object.entries(ROUTES as Readonly<Record<string, Route>>);
const tenants = routes.filter(([, route]) => route.holds === 'tenant');
/** What of the scopes a route takes somebody with no more than `runs:read` does not have. */
const lackedBy = ({ access }: Pick<Route, 'access'>): string =>
  (access as readonly string[]).filter((scope) => scope !== 'runs:read').join(' ');
const guarded = routes.filter(([, route]) => route.access !== 'public');

/** A body that would be granted to who may. */
const BODIES: Readonly<Record<string, object>> = {
  createRun: { workflowId: 'plans' },
  cancelRun: { reason: 'mine now' },
  resolveInterrupt: { resumeValue: { action: 'accept' } },
  putWorkflow: { name: 'mine now', nodes: [noop('a')] },
  putMount: { url: 'https://example.com/mcp' },
  bulkCancelRuns: { runIds: ['01a229a0-0000-7000-8000-000000000000'] },
  pauseRun: { reason: 'mine now' },
  resumeRun: {},
  forkRun: { mode: 'branch', fromSeq: 0 },
  createWebhook: { url: 'https://hooks.example.com/', events: ['run.completed'] },
};
const NOBODYS = {
  workflowId: 'no-such',
  serverId: 'no-such',
  nodeId: 'no-such',
  webhookId: 'no-such',
  runId: '01a229a0-0000-7000-8000-000000000000',
};
const addressOf = ({ path }: Route, names: Readonly<Record<string, string>>): string =>
  `${path}${path.endsWith(':diff') ? '?against={runId}' : ''}`.replace(/\{(\w+)\}/g, (_, name: string) => names[name] ?? '');
const ask = (who: Client, name: string, route: Route, names = hers, more: Sent = {}): Promise<Answer> =>
  who.ask(route.method, addressOf(route, names), {
    ...(BODIES[name] && { body: BODIES[name] }),
    ...more,
    headers: { accept: 'application/json', ...more.headers },
  });
/** What is said, but for the name that was asked for. */
const nameless = ({ text }: Answer, names: Readonly<Record<string, string>>): string =>
  Object.entries(names).reduce((said, [name, value]) => said.replaceAll(value, name), text);
const bodyOf = ({ text }: Answer) => JSON.parse(text) as { error: string; message: string; details?: Record<string, unknown> };

/** Everything of Alice's that anyone could have touched. */
const state = async () => ({
  // But for its tokens, which are made anew from time to time.
  run: JSON.stringify(await alice.run(hers['runId'] as string), (name, value: unknown) =>
    ['interruptToken', 'callbackUrl'].includes(name) ? undefined : value,
  ),
  events: await alice.events(hers['runId'] as string),
  runs: await alice.get('/v1/host/isthmus/runs'),
  workflow: await alice.get('/v1/host/isthmus/workflows/plans'),
  mount: await alice.get('/v1/host/isthmus/mounts/vault'),
  tools: await new Mount(stack.mcpUrl, stack.keys.primary).names(),
});
/** The last test of a group whose tests change nothing of hers, and write nothing at all. */
function nothingIsTouched(): void {
  const seen = async () => ({ state: await state(), rows: await rowCounts(stack) });
  let before: Awaited<ReturnType<typeof seen>>;
  beforeAll(async () => {
    before = await seen();
  });
  it('leaves everything as it was', async () => {
    expect(await seen()).toEqual(before);
  });
}

describe('another tenant', () => {
  it.each(tenants)('finds nothing of hers through %s: it hears what it would of a thing that nobody has', async (name, route) => {
    const [theirs, nobodys] = [await ask(bob, name, route), await ask(bob, name, route, NOBODYS)];
    expect([403, 404]).toContain(theirs.status);
    expect([theirs.status, nameless(theirs, hers)]).toEqual([nobodys.status, nameless(nobodys, NOBODYS)]);
    expect(theirs.text).not.toContain('acme');
  });

  it('gets no further by any other method or by a header that names her tenant', async () => {
    for (const [name, route] of tenants) {
      for (const method of ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE']) {
        const answer = await bob.ask(method, addressOf(route, hers), {
          headers: { accept: 'application/json', 'x-tenant-id': 'acme', 'x-openwop-tenant': 'acme', 'x-forwarded-user': 'user-alice' },
          ...(method === 'POST' && { body: BODIES[name] ?? {} }),
        });
        expect([403, 404, 405]).toContain(answer.status);
      }
    }
  });

  it('sees none of it in its lists, and starts no run of her workflow', async () => {
    for (const path of ['/v1/host/isthmus/runs', '/v1/host/isthmus/workflows', '/v1/host/isthmus/mounts']) {
      const { text } = await bob.ask('GET', path);
      for (const trace of [hers['runId'], 'plans', 'vault', 'acme']) expect(text).not.toContain(trace);
    }
    const refused = await bob.ask('POST', '/v1/runs', { body: { workflowId: 'plans' } });
    expect([refused.status, bodyOf(refused).error]).toEqual([400, 'validation_error']);
  });

  it.each([{ tenantId: 'acme' }, { scopeId: 'elsewhere' }, { tenantId: 'acme', scopeId: 'main' }])(
    'may not say it was %j',
    async (claim) => {
      const refused = await bob.ask('POST', '/v1/runs', { body: { workflowId: 'plans', ...claim } });
      expect([refused.status, bodyOf(refused).error]).toEqual([403, 'forbidden']);
    },
  );

  it('neither sees nor calls her tools, in the words of a tool that nobody has', async () => {
    const theirs = new Mount(stack.mcpUrl, stack.keys.tenantB);
    expect(await theirs.names()).toEqual([]);
    const [hidden, unknown] = [await theirs.call('deploy', { env: 'prod' }), await theirs.call('no-such-tool')];
    expect(hidden.error).toMatchObject({ code: -32602 });
    expect([hidden.status, hidden.error]).toEqual([unknown.status, unknown.error]);
  });

  nothingIsTouched();
});

describe('another tenant that makes things of its own', () => {
  it('may give them the keys of idempotency that hers have', async () => {
    const headers = { 'idempotency-key': 'shared' };
    const first = await alice.start('plans', {}, { headers });
    await bob.register(chain('own', [noop('a')]));
    const own = await bob.ask('POST', '/v1/runs', { body: { workflowId: 'own' }, headers });
    expect([own.status, own.headers.get('openwop-idempotent-replay')]).toEqual([201, 'false']);
    expect(own.text).not.toContain(first);
  });

  it('may give them the names that hers have, and cannot answer her question with them', async () => {
    const before = await state();
    await bob.register({ ...DEPLOY, name: 'theirs' });
    await bob.mount('vault', { url: 'https://example.com/mcp' });
    expect(await bob.get('/v1/workflows/plans')).toMatchObject({ name: 'theirs' });
    const answer = await new Mount(stack.mcpUrl, stack.keys.tenantB).answer('deploy', { env: 'prod' }, asked, {
      action: 'accept',
      content: { action: 'accept' },
    });
    expect(answer.error).toMatchObject({ code: -32602, data: { reason: 'invalid_request_state' } });
    const gone = await bob.ask('DELETE', '/v1/host/isthmus/mounts/vault');
    expect(gone.status).toBe(204);
    expect(await state()).toEqual(before);
  });
});

describe('a credential', () => {
  /** Of the right form down to the checksum, with a secret that nobody was given. */
  const keyOf = (id: string): string => {
    const body = `isk_${id}_${'s'.repeat(43)}`;
    return body + createHash('sha256').update(body).digest('base64url').slice(0, 6);
  };

  it.each(guarded)('is needed for %s, and a forged one is none', async (name, route) => {
    const mine = keyIdOf(stack.keys.primary);
    for (const key of [undefined, keyOf(mine), keyOf('0'.repeat(24)), `${stack.keys.primary}x`, 'undefined']) {
      const answer = await ask(new Client(stack.baseUrl, key), name, route);
      expect([answer.status, bodyOf(answer).error]).toEqual([401, 'unauthenticated']);
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer /);
    }
  });

  it('is needed at the mount', async () => {
    for (const key of [undefined, 'nobodys']) expect((await new Mount(stack.mcpUrl, key).list()).status).toBe(401);
  });

  it.each(guarded)('with no more than runs:read is granted %s only where that is all it takes', async (name, route) => {
    const needed = (route.access as readonly string[]).join(' ');
    if (needed === 'runs:read') {
      expect((await ask(low, name, route)).status).toBe(200);
      return;
    }
    const refused = await ask(low, name, route);
    expect([refused.status, bodyOf(refused)]).toEqual([
      403,
      expect.objectContaining({ error: 'forbidden', details: { scopeRequired: lackedBy(route) } }),
    ]);
  });

  nothingIsTouched();

  it('that is refused leaves a trace in the audit log, whose chains are unbroken', async () => {
    const wanted = guarded.map(([, route]) => route).filter(({ access }) => (access as readonly string[]).join() !== 'runs:read');
    await until(async () => {
      const denied = (await audited(stack, 'acme')).filter(({ type }) => type === 'authorization.decided').map(({ facts }) => facts);
      return wanted.every(({ method, path, access }) =>
        denied.some(
          ({ principal, action, resource, allowed, reason }) =>
            principal === 'user-low' &&
            action === lackedBy({ access }) &&
            resource === `${method} ${path}` &&
            allowed === false &&
            reason === 'scope-missing',
        ),
      );
    });
    for (const [tenant, reason] of [
      ['acme', 'secret-wrong'],
      [undefined, 'unknown'],
    ] as const) {
      const entries = await audited(stack, tenant);
      expect(entries.filter(({ type }) => type === 'key.refused').map(({ facts }) => facts['reason'])).toContain(reason);
      expect(isUnbroken(entries)).toBe(true);
    }
    const forgery = (await audited(stack, 'acme')).map((entry, at) => (at === 1 ? { ...entry, type: 'forged' } : entry));
    expect(isUnbroken(forgery)).toBe(false);
  });

  it('is known to the database by its hash alone, and each service logs in as itself', async () => {
    const hashes = await query<{ secret_hash: string }>(stack, 'select secret_hash from authz.api_keys');
    expect(hashes).toHaveLength(4);
    for (const { secret_hash: hash } of hashes) expect(hash).toMatch(/^\$argon2id\$/);
    const logins = await query<{ usename: string }>(
      stack,
      `select distinct usename from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() and datname is not null order by 1`,
    );
    expect(logins.map(({ usename }) => usename)).toEqual(['isthmus_authz', 'isthmus_engine', 'isthmus_mcp_client', 'isthmus_mcp_server']);
  });
});

describe('rights that change', () => {
  const FELT_MS = 2_000;
  /** Does `ask` over and over, until told to stop; answers what came back, each once. */
  const hammer = (ask: () => Promise<unknown>) => {
    const seen = new Set<unknown>();
    let isOver = false;
    const done = (async () => {
      while (!isOver) seen.add(await ask().catch((error: Error) => error.message));
      return [...seen];
    })();
    return () => {
      isOver = true;
      return done;
    };
  };

  it('are felt within two seconds at every door by the key that is revoked, and only there', async () => {
    const revoked = new Client(stack.baseUrl, stack.keys.secondary);
    const mount = new Mount(stack.mcpUrl, stack.keys.secondary);
    const runId = hers['runId'] as string;
    expect([(await revoked.ask('GET', `/v1/runs/${runId}`)).status, (await mount.list()).status]).toEqual([200, 200]);
    // Streams of a run that waits: nothing but the end of its rights ends the one, nothing but the end of the run the other.
    const [cut, kept] = [gather(await revoked.stream(runId)), gather(await alice.stream(runId))];

    expect(await administer(stack, 'revoke-key', keyIdOf(stack.keys.secondary))).toMatch(/is revoked/);
    const began = performance.now();
    const left = () => ({ timeoutMs: FELT_MS - (performance.now() - began) });
    await until(async () => (await revoked.ask('GET', `/v1/runs/${runId}`)).status === 401, { ...left(), what: 'REST' });
    await until(async () => (await mount.list()).status === 401, { ...left(), what: 'the mount' });
    expect((await cut).map(({ data }) => data.type)).not.toContain('run.completed');
    expect(performance.now() - began).toBeLessThan(FELT_MS);
    expect(bodyOf(await revoked.ask('GET', `/v1/runs/${runId}`)).error).toBe('key_revoked');

    await alice.resolve(runId, 'gate', { action: 'accept' });
    expect((await kept).at(-1)?.data.type).toBe('run.completed');
  }, 60_000);

  /** What the operator's command does, but that its bell is lost: every service hears of it within a second, one after the other. */
  const changeSilently = (scopes: readonly string[]) =>
    query(
      stack,
      `with head as (update authz.revocation_head set epoch = epoch + 1 returning epoch),
         changed as (update authz.principals set scopes = $1 where tenant = 'acme' and principal_id = 'user-low')
       insert into authz.revocations (epoch, tenant, at, reason) select epoch, 'acme', now(), 'scopes-changed' from head`,
      [scopes],
    );

  it('are never felt by anybody else: no request is refused and no run fails because a colleague may do more or less', async () => {
    const mount = new Mount(stack.mcpUrl, stack.keys.primary);
    await alice.register(chain('calls', [call('vault', 'echo', '{"text": "hi"}')]));
    await alice.register(chain('echoes', [tool('say'), noop('a')]));
    const stops = [1, 2].flatMap(() => [
      hammer(async () => (await alice.ask('GET', '/v1/host/isthmus/runs?limit=1')).status),
      hammer(async () => (await mount.call('say')).result?.resultType),
      hammer(async () => alice.ended(await alice.start('calls'))),
    ]);
    for (const [scope, status] of [
      ['runs:create', 403],
      ['runs:read', 200],
      ['runs:create', 403],
      ['runs:read', 200],
    ] as const) {
      await changeSilently([scope]);
      await until(async () => (await low.ask('GET', '/v1/host/isthmus/runs?limit=1')).status === status);
    }
    const seen = await Promise.all(stops.map((stop) => stop()));
    expect(seen.flat().sort()).toEqual([200, 200, 'complete', 'complete', 'completed', 'completed']);
  }, 60_000);
});

it('writes no key into any log', () => {
  for (const key of Object.values(stack.keys)) expect(stack.logged.filter((line) => line.includes(key))).toEqual([]);
});
