import { createServer } from 'node:http';
import { SystemClock } from '@isthmus/chassis';
import { BELLS } from '@isthmus/protocol';
import { modernPeer, type PeerOptions, until } from '@isthmus/testing';
import { describe, expect, it, jest } from '@jest/globals';
import { always, onCall, peer } from './peer-answers.suite.js';
import { callOf, ending, errorOf, rig, socketsHear, targetOf } from './rig.suite.js';

describe('time', () => {
  it('ends a call at its deadline, and the server hears of it', async () => {
    const remote = await peer();
    const { tools } = rig();
    await tools.call(targetOf(remote.url), callOf('echo', { text: 'so that the connection is there' }));
    expect(await errorOf(tools.call(targetOf(remote.url), callOf('slow', {}, { timeoutMs: 1_000 })))).toMatchObject({
      code: 'mcp_server_disconnected',
      details: { reason: 'timeout', sent: true },
    });
    await until(() => remote.slow.aborted === 1);
  });

  it('is not spent on a server that says to come back in an hour, once the call is over', async () => {
    const hour = 3_600_000;
    const { url } = await peer({
      intercept: onCall((_, response) =>
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`id: 1\nretry: ${hour}\ndata:\n\n`),
      ),
    });
    const { tools } = rig();
    const started = jest.spyOn(globalThis, 'setTimeout');
    const cleared = jest.spyOn(globalThis, 'clearTimeout');
    try {
      const error = await errorOf(tools.call(targetOf(url), callOf('echo', { text: 'x' }, { timeoutMs: 1_500 })));
      expect(error).toMatchObject({ details: { reason: 'timeout' } });
      const waiting = started.mock.results[started.mock.calls.findIndex(([, delay]) => delay === hour)]?.value;
      expect(waiting).toBeDefined();
      expect(cleared.mock.calls.map(([timer]) => timer)).toContain(waiting);
    } finally {
      started.mockRestore();
      cleared.mockRestore();
    }
  });

  it('ends a call at its deadline when the server does not even say hello', async () => {
    const { url } = await peer({ intercept: () => true });
    expect(await errorOf(rig().tools.call(targetOf(url), callOf('echo', { text: 'x' }, { timeoutMs: 200 })))).toMatchObject({
      code: 'mcp_server_disconnected',
      details: { reason: 'timeout', sent: false },
    });
  });

  it('stops a call that is abandoned, at the server too, within a second', async () => {
    const remote = await peer();
    const { tools, inFlight } = rig();
    const call = callOf('slow');
    const ended = errorOf(tools.call(targetOf(remote.url), call));
    await until(() => remote.slow.running === 1);
    inFlight.abandon(BELLS.abandon.subject('somebody-elses-call'));
    inFlight.abandon(BELLS.abandon.subject(call.invocationId));
    expect(await ended).toMatchObject({ code: 'mcp_tool_invocation_failed', details: { reason: 'abandoned' } });
    await until(() => remote.slow.aborted === 1, { timeoutMs: 1_000 });
  });

  it('sends nothing for an asker whose lease is over', async () => {
    const remote = await peer();
    expect(await errorOf(rig().tools.call(targetOf(remote.url), callOf('echo', { text: 'x' }, { startWithinMs: 0 })))).toMatchObject({
      code: 'invocation_too_late',
    });
    expect(remote.calls('echo')).toEqual([]);
  });

  it('sends nothing when the lease ends while the connection is being made', async () => {
    class Clock extends SystemClock {
      ahead = 0;
      override monotonic(): number {
        return super.monotonic() + this.ahead;
      }
    }
    const clock = new Clock();
    const remote = await peer({
      intercept: ({ method }) => {
        if (method === 'tools/list') clock.ahead = 60_000;
        return false;
      },
    });
    expect(await errorOf(rig({ clock }).tools.call(targetOf(remote.url), callOf('echo', { text: 'x' })))).toMatchObject({
      code: 'invocation_too_late',
    });
    expect(remote.calls('echo')).toEqual([]);
    expect(remote.requests.some(({ method }) => method === 'tools/list')).toBe(true);
  });
});

describe('a call whose outcome is unknown', () => {
  function dropping(times: number): PeerOptions['intercept'] {
    let dropped = 0;
    return ({ method }, response) => {
      if (method !== 'tools/call' || dropped >= times) return false;
      dropped += 1;
      response.destroy();
      return true;
    };
  }

  it('is not sent again by itself: the asker is told that it may have been received', async () => {
    const remote = await peer({ intercept: dropping(1) });
    expect(await errorOf(rig().tools.call(targetOf(remote.url), callOf('echo', { text: 'x' })))).toMatchObject({
      code: 'mcp_server_disconnected',
      details: { sent: true },
    });
    expect(remote.calls('echo')).toHaveLength(1);
  });

  it('is told at once when a stream ends without a result', async () => {
    const { url } = await peer({
      intercept: onCall((_, response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n')),
    });
    expect(await errorOf(rig().tools.call(targetOf(url), callOf('echo', { text: 'x' })))).toMatchObject({
      code: 'mcp_server_disconnected',
      details: { reason: 'transport', sent: true },
    });
  });

  it('is sent once more, under the same id, where the mount allows it', async () => {
    const remote = await peer({ intercept: dropping(1) });
    const call = callOf('echo', { text: 'x' });
    expect(await rig().tools.call(targetOf(remote.url, { repeatUnknown: 'hinted' }), call)).toMatchObject({ is: 'complete' });
    expect(remote.calls('echo').map(({ headers }) => headers['idempotency-key'])).toEqual([call.invocationId, call.invocationId]);
  });

  it('is not sent more often than that', async () => {
    const remote = await peer({ intercept: dropping(100) });
    expect(await errorOf(rig().tools.call(targetOf(remote.url, { repeatUnknown: 'always' }), callOf('echo', { text: 'x' })))).toMatchObject(
      { code: 'mcp_server_disconnected' },
    );
    expect(remote.calls('echo')).toHaveLength(2);
    expect(remote.requests.length).toBeLessThanOrEqual(12);
  });

  it.each([
    ['never', 'echo', false],
    ['hinted', 'echo', true],
    ['hinted', 'fail', false],
    ['always', 'fail', true],
  ] as const)('after a crash of the asker: %s, %s: %s', async (repeatUnknown, tool, isSent) => {
    const remote = await peer();
    const reply = rig({ repeatUnknown }).tools.call(
      targetOf(remote.url),
      callOf(tool, tool === 'echo' ? { text: 'x' } : {}, { repeat: true }),
    );
    if (isSent) expect(await reply).toMatchObject({ is: 'complete' });
    else expect(await errorOf(reply)).toMatchObject({ code: 'node_outcome_unknown' });
    expect(remote.calls(tool)).toHaveLength(isSent ? 1 : 0);
  });

  it('follows the mount, not the operator, where the mount says so', async () => {
    const remote = await peer();
    expect(
      await errorOf(
        rig({ repeatUnknown: 'always' }).tools.call(
          targetOf(remote.url, { repeatUnknown: 'never' }),
          callOf('echo', { text: 'x' }, { repeat: true }),
        ),
      ),
    ).toMatchObject({ code: 'node_outcome_unknown' });
  });
});

describe('a server that is away', () => {
  it('is found again as soon as it is back', async () => {
    const first = await modernPeer();
    const port = Number(new URL(first.url).port);
    const { tools } = rig();
    await tools.call(targetOf(first.url), callOf('echo', { text: 'x' }));
    await first.close();
    await socketsHear();
    expect(await errorOf(tools.call(targetOf(first.url), callOf('echo', { text: 'x' })))).toMatchObject({
      code: 'mcp_server_disconnected',
      details: { sent: false },
    });
    await peer({ port });
    expect(await tools.call(targetOf(first.url), callOf('echo', { text: 'x' }))).toMatchObject({ is: 'complete' });
  });

  it('is left alone after five failures', async () => {
    const remote = await peer({ intercept: always(503) });
    const { tools } = rig();
    const errors = [];
    for (let time = 0; time < 6; time += 1) errors.push(await errorOf(tools.call(targetOf(remote.url), callOf('echo', { text: 'x' }))));
    expect(errors.map(({ details }) => details?.['reason'])).toEqual([...Array.from({ length: 5 }, () => 'transport'), 'breaker_open']);
    expect(remote.requests).toHaveLength(5);
  });

  it('gets no more than twelve requests for one call, whatever it does', async () => {
    let nth = 0;
    const remote = await peer({
      intercept: (request, response) => {
        if (request.method !== 'tools/call' && request.httpMethod !== 'GET') return false;
        nth += 1;
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`id: ${nth}\nretry: 0\ndata:\n\n`);
        return true;
      },
    });
    expect(await errorOf(rig().tools.call(targetOf(remote.url), callOf('echo', { text: 'x' }, { timeoutMs: 8_000 })))).toMatchObject({
      code: 'mcp_server_disconnected',
    });
    expect(remote.requests.length).toBeLessThanOrEqual(14);
  });
});

describe('connections', () => {
  it('are made anew after many uses', async () => {
    const remote = await peer();
    const { tools } = rig({ limits: { uses: 2 } });
    for (let time = 0; time < 5; time += 1) await tools.call(targetOf(remote.url), callOf('echo', { text: 'x' }));
    expect(remote.requests.filter(({ method }) => method === 'server/discover')).toHaveLength(3);
  });

  it('are given up when idle, and when there are too many, but never under a call', async () => {
    const remote = await peer();
    const { tools } = rig({ limits: { connections: 1 } });
    const slow = tools.call(targetOf(remote.url), callOf('slow', { ms: 300 }));
    await until(() => remote.slow.running === 1);
    await tools.call(targetOf(remote.url, {}, { serverId: 'other' }), callOf('echo', { text: 'x' }));
    expect(await slow).toMatchObject({ is: 'complete' });
    expect(remote.slow.aborted).toBe(0);
  });
});

describe('a redirect', () => {
  it('is not followed, not even to the same host', async () => {
    let reached = 0;
    const elsewhere = createServer((_, response) => {
      reached += 1;
      response.end();
    });
    ending({ close: () => new Promise((resolve) => elsewhere.close(resolve)) });
    await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
    const { port } = elsewhere.address() as { port: number };
    for (const location of [`http://127.0.0.1:${port}/mcp`, '/mcp2']) {
      const remote = await peer({ intercept: always(307, { location }) });
      expect(await errorOf(rig().tools.call(targetOf(remote.url), callOf('echo', { text: 'x' })))).toMatchObject({
        code: 'egress_denied',
        details: { reason: 'redirect' },
      });
      expect(remote.requests).toHaveLength(1);
    }
    expect(reached).toBe(0);
  });
});
