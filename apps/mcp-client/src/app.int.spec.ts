import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readConfig, runInContext } from '@isthmus/chassis';
import { asTenant, Db } from '@isthmus/db';
import { Bell, Bus } from '@isthmus/messaging';
import { authz, BELLS, type Caller, type Contract, type Input, mcpClient, type Output } from '@isthmus/protocol';
import {
  answer,
  type BootedService,
  bootService,
  callerOf,
  modernPeer,
  type ModernPeer,
  type PassportIssuer,
  passportIssuer,
  testConnection,
  testDatabase,
  type TestDatabase,
  testNats,
  until,
  watchLeaks,
} from '@isthmus/testing';
import type { NatsConnection } from '@nats-io/transport-node';
import { AppModule } from './app.module.js';
import { Config } from './config.js';

const alice = callerOf({ tenant: 'tenant-a' });
const neighbour = callerOf({ tenant: 'tenant-a', workspace: 'another-workspace' });
const stranger = callerOf({ tenant: 'tenant-b', workspace: alice.workspace });

describe('mcp-client', () => {
  let connection: NatsConnection;
  let issuer: PassportIssuer;
  let database: TestDatabase;
  let service: BootedService;
  let remote: ModernPeer;
  let stopAudit: () => void;
  let leaks: ReturnType<typeof watchLeaks>;

  beforeAll(async () => {
    leaks = watchLeaks();
    connection = await testConnection();
    issuer = await passportIssuer(connection);
    stopAudit = answer(connection, authz.recordAudit, ({ entries }) => ({ recorded: entries.length }));
    database = await testDatabase();
    remote = await modernPeer();
    const config = readConfig(Config, {
      SERVICE_NAME: 'mcp-client',
      NATS_URL: testNats(),
      DATABASE_URL: database.serviceUrl('mcp-client'),
      LOG_LEVEL: 'error',
      EGRESS_ALLOW: '127.0.0.0/8',
    });
    service = await bootService(AppModule.forRoot(config), { service: 'mcp-client' });
  });
  afterAll(async () => {
    await service.stop();
    await remote.close();
    issuer.stop();
    stopAudit();
    await connection.close();
    await database.drop();
    await leaks.settled();
  });

  const ask = async <C extends Contract>(caller: Caller, contract: C, input: Input<C>): Promise<Output<C>> =>
    service.app.get(Bus, { strict: false }).call(contract, input, { passport: await issuer.passport(caller), deadlineMs: 14_000 });
  const put = (caller: Caller, serverId: string, spec: object = {}) =>
    ask(caller, mcpClient.putMount, { serverId, spec: { url: remote.url, ...spec } });
  let calls = 0;
  const call = (caller: Caller, serverId: string, toolName: string, args: Record<string, string>, rest: object = {}) => {
    calls += 1;
    return ask(caller, mcpClient.callTool, {
      serverId,
      toolName,
      arguments: args,
      invocationId: `an-invocation-${calls}-0000`,
      runId: 'run',
      round: 0,
      startWithinMs: 60_000,
      ...rest,
    });
  };

  it('keeps what a tenant registers', async () => {
    const first = await put(alice, 'kept', { description: 'one' });
    expect(first).toMatchObject({
      created: true,
      mount: {
        serverId: 'kept',
        url: remote.url,
        description: 'one',
        transport: 'streamable-http',
        versionPolicy: { allow: ['2026-07-28'] },
      },
    });
    const second = await put(alice, 'kept', { description: 'two' });
    expect(second).toMatchObject({ created: false, mount: { description: 'two', createdAt: first.mount.createdAt } });
    expect(await ask(alice, mcpClient.getMount, { serverId: 'kept' })).toEqual(second.mount);
    expect(await ask(alice, mcpClient.deleteMount, { serverId: 'kept' })).toEqual({ deleted: true });
    for (const contract of [mcpClient.getMount, mcpClient.deleteMount])
      await expect(ask(alice, contract, { serverId: 'kept' })).rejects.toMatchObject({ code: 'not_found' });
  });

  it('lets one of many at once create it', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => put(alice, 'raced')));
    expect(answers.filter(({ created }) => created)).toHaveLength(1);
  });

  it('lists by pages', async () => {
    const lister = callerOf({ tenant: 'tenant-list' });
    for (const serverId of ['c', 'a', 'B', 'b']) await put(lister, serverId);
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await ask(lister, mcpClient.listMounts, { limit: 2, ...(cursor && { cursor }) });
      ids.push(...page.mounts.map(({ serverId }) => serverId));
      cursor = page.nextCursor;
    } while (cursor);
    expect([...ids].sort()).toEqual(['B', 'a', 'b', 'c']);
  });

  it('refuses what could never work', async () => {
    await expect(put(alice, 'bad', { url: 'http://10.0.0.1/mcp' })).rejects.toMatchObject({ code: 'egress_denied' });
    await expect(put(alice, 'bad', { url: 'http://[::ffff:169.254.169.254]/' })).rejects.toMatchObject({ code: 'egress_denied' });
    await expect(put(alice, 'bad', { url: 'ftp://example.com/' })).rejects.toMatchObject({ code: 'validation_error' });
    await expect(put(alice, 'bad', { unknown: 1 })).rejects.toMatchObject({ code: 'validation_error' });
    await expect(ask(alice, mcpClient.getMount, { serverId: 'bad' })).rejects.toMatchObject({ code: 'not_found' });
  });

  it('calls a tool of it, in the trace of whoever asks', async () => {
    await put(alice, 'remote');
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const reply = await runInContext({ traceparent: `00-${traceId}-b7ad6b7169203331-01` }, () =>
      call(alice, 'remote', 'echo', { text: 'hi' }),
    );
    expect(reply).toMatchObject({ is: 'complete', negotiatedVersion: '2026-07-28', result: { content: [{ type: 'text', text: 'hi' }] } });
    expect(remote.calls('echo').at(-1)?.body).toMatchObject({ params: { _meta: { traceparent: expect.stringContaining(traceId) } } });
    expect((await ask(alice, mcpClient.listTools, { serverId: 'remote' })).tools.map(({ name }) => name)).toContain('echo');
  });

  it('uses a changed mount from the next call on', async () => {
    await put(alice, 'changing');
    await call(alice, 'changing', 'echo', { text: 'x' });
    await put(alice, 'changing', { toolAllowlist: ['fail'] });
    await expect(call(alice, 'changing', 'echo', { text: 'x' })).rejects.toMatchObject({ code: 'mcp_tool_not_found' });
    await put(alice, 'changing', { versionPolicy: { allow: ['2025-11-25'] } });
    await expect(call(alice, 'changing', 'echo', { text: 'x' })).rejects.toMatchObject({
      code: 'interop_version_unsupported',
      details: { supported: ['2026-07-28'] },
    });
  });

  it.each([
    ['another tenant', stranger],
    ['another workspace', neighbour],
  ])('shows %s nothing of a mount', async (_, other) => {
    await put(alice, 'mine');
    const sent = remote.requests.length;
    await expect(ask(other, mcpClient.getMount, { serverId: 'mine' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(ask(other, mcpClient.deleteMount, { serverId: 'mine' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(call(other, 'mine', 'echo', { text: 'x' })).rejects.toMatchObject({ code: 'mcp_server_not_found' });
    await expect(ask(other, mcpClient.listTools, { serverId: 'mine' })).rejects.toMatchObject({ code: 'mcp_server_not_found' });
    expect(await ask(other, mcpClient.listMounts, {})).toEqual({ mounts: [] });
    expect(remote.requests).toHaveLength(sent);
    expect(await put(other, 'mine')).toMatchObject({ created: true });
    await ask(other, mcpClient.deleteMount, { serverId: 'mine' });
    expect(await ask(alice, mcpClient.getMount, { serverId: 'mine' })).toMatchObject({ serverId: 'mine' });
  });

  it('is held apart by the database itself', async () => {
    await put(alice, 'walled');
    const db = service.app.get(Db, { strict: false });
    expect(await db.mcpMount.count()).toBe(0);
    expect(await asTenant(db, 'tenant-b', (tx) => tx.mcpMount.count({ where: { tenant: 'tenant-a' } }))).toBe(0);
    expect(await asTenant(db, 'tenant-a', (tx) => tx.mcpMount.count({ where: { serverId: 'walled' } }))).toBe(1);
    await expect(db.$queryRaw`select 1 from engine.runs`).rejects.toThrow(/permission denied/);
  });

  it('needs the scope of what is asked', async () => {
    const reader = callerOf({ tenant: 'tenant-a', scopes: ['mcp:read'] });
    await expect(put(reader, 'remote')).rejects.toMatchObject({ code: 'forbidden', details: { scopeRequired: 'mcp:manage' } });
    await expect(call(reader, 'remote', 'echo', { text: 'x' })).rejects.toMatchObject({
      code: 'forbidden',
      details: { scopeRequired: 'mcp:invoke' },
    });
  });

  it('stops a call when its bell rings', async () => {
    await put(alice, 'remote');
    const invocationId = 'an-invocation-to-abandon';
    const ended = call(alice, 'remote', 'slow', {}, { invocationId }).catch((error: unknown) => error);
    await until(() => remote.slow.running === 1);
    service.app.get(Bell, { strict: false }).ring(BELLS.abandon.subject(invocationId));
    expect(await ended).toMatchObject({ code: 'mcp_tool_invocation_failed', details: { reason: 'abandoned' } });
    await until(() => remote.slow.aborted === 1, { timeoutMs: 1_000 });
  });

  it('says what it does', async () => {
    expect(await service.app.get(Bus, { strict: false }).call(mcpClient.describe, {})).toEqual({
      service: 'mcp-client',
      version: '1.0.0',
      discovery: { mcp: { supported: true }, mcpClient: { supported: true, transports: ['streamable-http'], trustBoundary: 'untrusted' } },
    });
  });
});
