import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Description, mergeDescriptions } from './capabilities.js';

const part = (service: string, discovery: Description['discovery']): Description => ({ service, version: '1', discovery });

describe('the discovery document', () => {
  it('unites what the services say of themselves', () => {
    expect(
      mergeDescriptions([
        part('mcp-server', { mcp: { transports: ['streamable-http'], limits: { page: 500 } } }),
        part('engine', { protocolVersion: '1', nodes: ['core.noop'] }),
        part('mcp-client', { mcp: { transports: ['streamable-http', 'stdio'], client: true }, nodes: ['core.openwop.mcp.invoke-tool'] }),
      ]),
    ).toEqual({
      protocolVersion: '1',
      nodes: ['core.noop', 'core.openwop.mcp.invoke-tool'],
      mcp: { transports: ['streamable-http', 'stdio'], client: true, limits: { page: 500 } },
    });
  });

  it('is the same bytes on every gateway, whoever answered first', () => {
    const json = fc.jsonValue({ maxDepth: 3 });
    const services = ['authz', 'engine', 'mcp-client', 'mcp-server'] as const;
    const parts = fc.tuple(
      ...services.map((service) =>
        fc.dictionary(fc.constantFrom('a', 'b', 'c'), json).map((discovery) => part(service, discovery as Description['discovery'])),
      ),
    );
    fc.assert(
      fc.property(parts, fc.array(fc.nat(), { minLength: 4, maxLength: 4 }), (all, keys) => {
        const shuffled = all
          .map((value, index) => ({ value, key: keys[index] ?? 0 }))
          .sort((a, b) => a.key - b.key)
          .map(({ value }) => value);
        expect(JSON.stringify(mergeDescriptions(shuffled))).toBe(JSON.stringify(mergeDescriptions(all)));
      }),
    );
  });

  it('has nothing of a service that is not there', () => {
    expect(mergeDescriptions([])).toEqual({});
  });
});
