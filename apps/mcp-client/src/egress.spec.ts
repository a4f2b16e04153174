import { describe, expect, it } from '@jest/globals';
import type { Resolve } from '@isthmus/egress';
import { modernPeer } from '@isthmus/testing';
import { callOf, ending, errorOf, LOOPBACK, rig, targetOf } from './rig.suite.js';

const named = (url: string, hostname: string) => url.replace('127.0.0.1', hostname);
const resolving = (...addresses: string[]): Resolve & { asked: string[] } => {
  const asked: string[] = [];
  const resolve: Resolve = async (hostname) => {
    asked.push(hostname);
    return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  };
  return Object.assign(resolve, { asked });
};

describe('the way out', () => {
  it.each(['127.0.0.1', '[::ffff:127.0.0.1]', 'localhost', '2130706433'])(
    'does not lead to %s when the operator allows nothing',
    async (hostname) => {
      const remote = ending(await modernPeer());
      const { tools, egress } = rig({ allow: '' });
      const url = named(remote.url, hostname);
      expect(egress.refusalOf(new URL(url).hostname)).toMatchObject({ code: 'egress_denied' });
      expect(await errorOf(tools.call(targetOf(url), callOf('echo', { text: 'x' })))).toMatchObject({ code: 'egress_denied', status: 403 });
      expect(remote.requests).toEqual([]);
    },
  );

  it('does not lead inside through a name', async () => {
    const remote = ending(await modernPeer());
    const { tools } = rig({ allow: '', resolve: resolving('127.0.0.1') });
    const error = await errorOf(tools.call(targetOf(named(remote.url, 'mcp.example.com')), callOf('echo', { text: 'x' })));
    expect(error).toMatchObject({ code: 'egress_denied', details: { host: 'mcp.example.com' } });
    expect(JSON.stringify(error.toEnvelope())).not.toContain('127.0.0.1');
    expect(remote.requests).toEqual([]);
  });

  it('does not lead to a name one of whose addresses is inside', async () => {
    const remote = ending(await modernPeer());
    const { tools } = rig({ allow: '127.0.0.1/32', resolve: resolving('127.0.0.1', '10.0.0.7') });
    expect(await errorOf(tools.call(targetOf(named(remote.url, 'mcp.example.com')), callOf('echo', { text: 'x' })))).toMatchObject({
      code: 'egress_denied',
    });
    expect(remote.requests).toEqual([]);
  });

  it('goes to the address that was judged and asks nobody else for one', async () => {
    const remote = ending(await modernPeer());
    const resolve = resolving('127.0.0.1');
    const { tools } = rig({ allow: LOOPBACK, resolve });
    expect(await tools.call(targetOf(named(remote.url, 'mcp.example.com')), callOf('echo', { text: 'x' }))).toMatchObject({
      is: 'complete',
    });
    expect(new Set(resolve.asked)).toEqual(new Set(['mcp.example.com']));
    expect(remote.requests[0]?.headers.host).toMatch(/^mcp\.example\.com:/);
  });

  it('is a disconnect, not a refusal, when the name is unknown', async () => {
    const { tools } = rig({ resolve: async () => Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' })) });
    expect(await errorOf(tools.call(targetOf('http://nowhere.invalid/mcp'), callOf('echo')))).toMatchObject({
      code: 'mcp_server_disconnected',
      details: { sent: false },
    });
  });
});
