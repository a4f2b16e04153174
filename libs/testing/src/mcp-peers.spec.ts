import { afterEach, describe, expect, it } from '@jest/globals';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { legacyPeer } from './mcp-legacy-peer.js';
import { modernPeer } from './mcp-modern-peer.js';
import { until } from './wait.js';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function connected(url: string, mode: 'auto' | 'legacy' | { pin: string }): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode }, inputRequired: { autoFulfill: false } },
  );
  stops.push(() => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

async function modern(options?: Parameters<typeof modernPeer>[0]) {
  const peer = await modernPeer(options);
  stops.push(() => peer.close());
  return { peer, client: await connected(peer.url, { pin: '2026-07-28' }) };
}

type Raw = { resultType: string; content?: { text: string }[]; requestState?: string; inputRequests?: Record<string, unknown> };
const call = (client: Client, params: Record<string, unknown>) =>
  client.request({ method: 'tools/call', params: params as never }, { allowInputRequired: true }) as unknown as Promise<Raw>;

describe('the modern peer', () => {
  it('speaks 2026-07-28 only, and records what it was asked', async () => {
    const { peer, client } = await modern();
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    expect((await client.listTools()).tools.map(({ name }) => name).sort()).toEqual(['big', 'echo', 'fail', 'needs_input', 'slow']);
    expect(await client.callTool({ name: 'echo', arguments: { text: 'hi' }, _meta: { traceparent: 't' } })).toMatchObject({
      content: [{ text: 'hi' }],
    });
    const [recorded] = peer.calls('echo');
    expect(recorded).toMatchObject({
      httpMethod: 'POST',
      headers: { 'mcp-method': 'tools/call', 'mcp-name': 'echo' },
      body: { params: { _meta: { traceparent: 't' } } },
    });
    await expect(connected(peer.url, 'legacy')).rejects.toThrow();
  });

  it('asks, as often as it is told, and takes only its own state back', async () => {
    const { client } = await modern();
    const params = { name: 'needs_input', arguments: { rounds: 2 } };
    const first = await call(client, params);
    expect(first).toMatchObject({ resultType: 'input_required', inputRequests: { 'name-1': { method: 'elicitation/create' } } });
    const answerOf = (round: number, name: string) => ({ [`name-${round}`]: { action: 'accept', content: { name } } });
    await expect(
      call(client, { ...params, requestState: `${first.requestState}x`, inputResponses: answerOf(1, 'Ada') }),
    ).rejects.toMatchObject({ code: -32602 });
    const second = await call(client, { ...params, requestState: first.requestState, inputResponses: answerOf(1, 'Ada') });
    const third = await call(client, { ...params, requestState: second.requestState, inputResponses: answerOf(2, 'Grace') });
    expect(third).toMatchObject({ content: [{ text: 'hello Ada, Grace' }] });
    const declined = await call(client, {
      ...params,
      requestState: first.requestState,
      inputResponses: { 'name-1': { action: 'decline' } },
    });
    expect(declined).toMatchObject({ isError: true, content: [{ text: 'answered with decline' }] });
  });

  it('notices that a call was given up', async () => {
    const { peer, client } = await modern();
    const controller = new AbortController();
    const calling = client.callTool({ name: 'slow' }, { signal: controller.signal });
    await until(() => peer.slow.running === 1);
    controller.abort();
    await expect(calling).rejects.toThrow();
    await until(() => peer.slow.aborted === 1);
    expect(peer.slow.running).toBe(0);
  });

  it('fails as tools do, and says much', async () => {
    const { client } = await modern();
    expect(await client.callTool({ name: 'fail' })).toMatchObject({ isError: true });
    const { content } = (await client.callTool({ name: 'big', arguments: { bytes: 1_500_000 } })) as { content: { text: string }[] };
    expect(content[0]?.text).toHaveLength(1_500_000);
  });

  it('lets a test answer instead of it', async () => {
    let isBroken = false;
    const { client } = await modern({
      intercept: (_request, response) => {
        if (isBroken) response.destroy();
        return isBroken;
      },
    });
    isBroken = true;
    await expect(client.callTool({ name: 'echo', arguments: { text: 'hi' } })).rejects.toThrow();
  });
});

describe('the legacy peer', () => {
  it('speaks 2025-11-25 with a session, and refuses the modern revision', async () => {
    const peer = await legacyPeer();
    stops.push(() => peer.close());
    const client = await connected(peer.url, 'legacy');
    expect(client.getNegotiatedProtocolVersion()).toBe('2025-11-25');
    expect(await client.callTool({ name: 'echo', arguments: { text: 'hi' } })).toMatchObject({ content: [{ text: 'hi' }] });
    expect(peer.sessions.size).toBe(1);
    expect(peer.calls('echo')[0]?.headers['mcp-session-id']).toBe([...peer.sessions][0]);
    await expect(connected(peer.url, { pin: '2026-07-28' })).rejects.toThrow();
  });

  it('is found by a client that may fall back', async () => {
    const peer = await legacyPeer();
    stops.push(() => peer.close());
    const client = await connected(peer.url, 'auto');
    expect(client.getProtocolEra()).toBe('legacy');
  });
});
