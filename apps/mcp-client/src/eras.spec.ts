import { type ChildProcess, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import type { ServerResponse } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { BELLS } from '@isthmus/protocol';
import { legacyPeer, modernPeer, type RecordedRequest, until } from '@isthmus/testing';
import { always, idOf, json, methodsOf } from './peer-answers.suite.js';
import { BOTH_ERAS, callOf, ending, errorOf, LEGACY_ONLY, rig, socketsHear, targetOf } from './rig.suite.js';

const echo = (text = 'x') => callOf('echo', { text });

describe('a server without handshake', () => {
  it('is spoken to in its own revision, also where the policy allows both', async () => {
    const remote = ending(await modernPeer());
    expect(await rig().tools.call(targetOf(remote.url, { versionPolicy: BOTH_ERAS }), echo())).toMatchObject({
      negotiatedVersion: '2026-07-28',
    });
    expect(methodsOf(remote.requests)).not.toContain('initialize');
  });

  it('is not spoken to where only an older revision is allowed, and says which it has', async () => {
    const remote = ending(await modernPeer());
    expect(await errorOf(rig().tools.call(targetOf(remote.url, { versionPolicy: LEGACY_ONLY }), echo()))).toMatchObject({
      code: 'interop_version_unsupported',
      retriable: false,
      details: { retriable: false, protocol: 'mcp', requested: '2025-11-25', supported: ['2026-07-28'] },
    });
  });
});

describe('a server with handshake', () => {
  it('is spoken to in the older revision after a probe, because the policy allows it', async () => {
    const remote = ending(await legacyPeer());
    const { tools } = rig();
    const target = targetOf(remote.url, { versionPolicy: BOTH_ERAS });
    expect(await tools.call(target, echo())).toMatchObject({ is: 'complete', negotiatedVersion: '2025-11-25' });
    expect(methodsOf(remote.requests).slice(0, 3)).toEqual(['server/discover', 'initialize', 'notifications/initialized']);
    const initialize = remote.requests.find(({ method }) => method === 'initialize');
    expect(initialize?.body).toMatchObject({ params: { protocolVersion: '2025-11-25', capabilities: {} } });
    expect(remote.calls('echo')[0]?.headers).toMatchObject({ 'mcp-protocol-version': '2025-11-25' });
    await tools.call({ ...target, tenant: 'tenant-b' }, echo());
    expect(methodsOf(remote.requests).filter((method) => method === 'server/discover')).toHaveLength(1);
  });

  it('is never spoken to in a revision the policy does not allow', async () => {
    const remote = ending(await legacyPeer());
    expect(await errorOf(rig().tools.call(targetOf(remote.url), echo()))).toMatchObject({
      code: 'interop_version_unsupported',
      details: { retriable: false, protocol: 'mcp', requested: '2026-07-28', supported: [] },
    });
    expect(methodsOf(remote.requests)).toEqual(['server/discover']);
  });

  it('may not talk us down: its counter-offer is refused before it is confirmed', async () => {
    const offer = (request: RecordedRequest, response: ServerResponse) => {
      if (request.method !== 'initialize') return false;
      response.setHeader('mcp-session-id', 'a-session');
      json(response, {
        jsonrpc: '2.0',
        id: idOf(request),
        result: { protocolVersion: '2025-03-26', capabilities: { tools: {} }, serverInfo: { name: 'SECRET', version: '1' } },
      });
      return true;
    };
    const remote = ending(await legacyPeer({ intercept: offer }));
    const error = await errorOf(rig().tools.call(targetOf(remote.url, { versionPolicy: BOTH_ERAS }), echo()));
    expect(error).toMatchObject({ code: 'interop_version_unsupported', details: { requested: '2026-07-28', supported: ['2025-03-26'] } });
    expect(JSON.stringify(error.toEnvelope())).not.toContain('SECRET');
    // The session it opened is ended again.
    expect(methodsOf(remote.requests)).toEqual(['server/discover', 'initialize', 'DELETE']);
  });

  it('fails closed on -32022 that names nothing we may use', async () => {
    const refuse = (request: RecordedRequest, response: ServerResponse) => {
      json(
        response,
        {
          jsonrpc: '2.0',
          id: idOf(request),
          error: { code: -32022, message: 'SECRET', data: { supported: ['2024-11-05'], requested: 'x', more: 'SECRET' } },
        },
        400,
      );
      return true;
    };
    const remote = ending(await legacyPeer({ intercept: refuse }));
    const error = await errorOf(rig().tools.call(targetOf(remote.url, { versionPolicy: BOTH_ERAS }), echo()));
    expect(error.toEnvelope()).toEqual({
      error: 'interop_version_unsupported',
      message: expect.not.stringContaining('SECRET'),
      details: { retriable: false, protocol: 'mcp', requested: '2026-07-28', supported: ['2024-11-05'] },
    });
    expect(methodsOf(remote.requests)).toEqual(['server/discover']);
  });

  it('is not taken for one because it is in trouble', async () => {
    for (const status of [401, 403, 500, 503]) {
      const remote = ending(await legacyPeer({ intercept: always(status) }));
      const error = await errorOf(rig().tools.call(targetOf(remote.url, { versionPolicy: BOTH_ERAS }), echo()));
      expect(error.code).toBe(status < 500 ? 'mcp_tool_invocation_failed' : 'mcp_server_disconnected');
      expect(methodsOf(remote.requests)).toEqual(['server/discover']);
    }
  });

  it('may lose our session without anyone noticing', async () => {
    const first = await legacyPeer();
    const port = Number(new URL(first.url).port);
    const { tools } = rig();
    const target = targetOf(first.url, { versionPolicy: BOTH_ERAS });
    await tools.call(target, echo('one'));
    await first.close();
    await socketsHear();
    const second = ending(await legacyPeer({ port }));
    expect(await tools.call(target, echo('two'))).toMatchObject({ is: 'complete', result: { content: [{ text: 'two' }] } });
    expect(second.sessions.size).toBe(1);
    expect(second.calls('echo').filter(({ headers }) => second.sessions.has(String(headers['mcp-session-id'])))).toHaveLength(1);
  });

  it('is spoken to without handshake once it was replaced by one that needs none', async () => {
    const first = await legacyPeer();
    const port = Number(new URL(first.url).port);
    const { tools } = rig();
    const target = targetOf(first.url, { versionPolicy: BOTH_ERAS });
    await tools.call(target, echo());
    await first.close();
    await socketsHear();
    ending(await modernPeer({ port }));
    expect(await tools.call(target, echo())).toMatchObject({ is: 'complete', negotiatedVersion: '2026-07-28' });
  });

  it('gets no answer to a question it asked in the other era', async () => {
    const remote = ending(await legacyPeer());
    const call = callOf('echo', { text: 'x' }, { round: 1, requestState: 'x', inputResponses: {} });
    expect(await errorOf(rig().tools.call(targetOf(remote.url, { versionPolicy: BOTH_ERAS }), call))).toMatchObject({
      code: 'interop_version_unsupported',
    });
    expect(remote.calls('echo')).toEqual([]);
  });

  it('is told of an abandoned call within a second', async () => {
    const remote = ending(await legacyPeer({ intercept: ({ method }) => method === 'tools/call' }));
    const { tools, inFlight } = rig();
    const call = echo();
    const ended = errorOf(tools.call(targetOf(remote.url, { versionPolicy: LEGACY_ONLY }), call));
    await until(() => remote.calls('echo').length === 1);
    const [request] = remote.calls('echo');
    inFlight.abandon(BELLS.abandon.subject(call.invocationId));
    expect(await ended).toMatchObject({ details: { reason: 'abandoned' } });
    const notice = await until(() => remote.requests.find(({ method }) => method === 'notifications/cancelled'), { timeoutMs: 1_000 });
    expect(notice?.body).toMatchObject({ params: { requestId: request && idOf(request) } });
  });

  it('is told when a connection is given up because nobody uses it', async () => {
    const remote = ending(await legacyPeer());
    const { tools } = rig({ limits: { idleMs: 50 } });
    await tools.call(targetOf(remote.url, { versionPolicy: LEGACY_ONLY }), echo());
    await until(() => remote.sessions.size === 0);
    expect(methodsOf(remote.requests).at(-1)).toBe('DELETE');
  });

  it('is told when a connection is given up for another', async () => {
    const remote = ending(await legacyPeer());
    const { tools } = rig({ limits: { connections: 1 } });
    await tools.call(targetOf(remote.url, { versionPolicy: LEGACY_ONLY }), echo());
    expect(remote.sessions.size).toBe(1);
    const [session] = remote.sessions;
    await tools.call(targetOf(remote.url, { versionPolicy: LEGACY_ONLY }, { serverId: 'other' }), echo());
    await until(() => !remote.sessions.has(String(session)));
  });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The reference server from npm, which nobody here wrote: 2025-11-25, with sessions. */
async function everything(port: number): Promise<{ url: string; close(): Promise<void> }> {
  const main = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js');
  const child: ChildProcess = spawn(process.execPath, [main, 'streamableHttp'], {
    env: { PATH: process.env['PATH'], PORT: String(port) },
    stdio: 'ignore',
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const url = `http://127.0.0.1:${port}/mcp`;
  await until(async () => (await fetch(url, { method: 'DELETE' })).status === 400, { timeoutMs: 15_000, what: 'server-everything' });
  return {
    url,
    close: () => {
      child.kill('SIGKILL');
      return exited;
    },
  };
}

describe('@modelcontextprotocol/server-everything', () => {
  it('is called where the policy allows its revision, also after a restart', async () => {
    const port = await freePort();
    const first = ending(await everything(port));
    const { tools } = rig();
    const target = targetOf(first.url, { versionPolicy: BOTH_ERAS });
    expect(await tools.call(target, callOf('get-sum', { a: 2, b: 3 }))).toMatchObject({
      is: 'complete',
      negotiatedVersion: '2025-11-25',
      result: { content: [{ text: expect.stringContaining('5') }] },
    });
    expect((await tools.list(target, 5_000)).tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['echo', 'get-sum']));
    await first.close();
    ending(await everything(port));
    expect(await tools.call(target, callOf('echo', { message: 'again' }))).toMatchObject({ is: 'complete' });
  }, 40_000);

  it('is refused where the policy does not', async () => {
    const { url } = ending(await everything(await freePort()));
    expect(await errorOf(rig().tools.call(targetOf(url), callOf('echo', { message: 'x' })))).toMatchObject({
      code: 'interop_version_unsupported',
    });
  }, 20_000);
});
