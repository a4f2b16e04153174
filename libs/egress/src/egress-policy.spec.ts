import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isAllowedAddress, literalAddress, parseCidrs } from './egress-policy.js';

const cidrs = (text: string) => parseCidrs(text) ?? [];

describe('where this host may go', () => {
  it.each([
    ['93.184.216.34', true],
    ['2606:2800:220:1:248:1893:25c8:1946', true],
    ['127.0.0.1', false],
    ['127.255.255.254', false],
    ['::1', false],
    ['0.0.0.0', false],
    ['::', false],
    ['10.0.0.1', false],
    ['172.16.0.1', false],
    ['172.31.255.255', false],
    ['172.32.0.1', true],
    ['192.168.1.1', false],
    ['169.254.169.254', false],
    ['168.63.129.16', false],
    ['100.64.0.1', false],
    ['100.100.100.200', false],
    ['192.0.0.192', false],
    ['198.18.0.1', false],
    ['224.0.0.1', false],
    ['255.255.255.255', false],
    ['fe80::1', false],
    ['fe80::1%eth0', false],
    ['fc00::1', false],
    ['fd00:ec2::254', false],
    ['fec0::1', false],
    ['ff02::1', false],
    ['2001:db8::1', false],
    ['::ffff:127.0.0.1', false],
    ['::ffff:7f00:1', false],
    ['::ffff:93.184.216.34', true],
    ['::127.0.0.1', false],
    ['64:ff9b::7f00:1', false],
    ['2002:7f00:1::', false],
    ['2001:0:7f00:1::', false],
    ['not an address', false],
  ])('%s: %s', (address, expected) => {
    expect(isAllowedAddress(address, [])).toBe(expected);
  });

  const octet = fc.integer({ min: 0, max: 255 });
  const inside = fc.oneof(
    fc.tuple(fc.constant(127), octet, octet, octet),
    fc.tuple(fc.constant(10), octet, octet, octet),
    fc.tuple(fc.constant(0), octet, octet, octet),
    fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), octet, octet),
    fc.tuple(fc.constant(192), fc.constant(168), octet, octet),
    fc.tuple(fc.constant(169), fc.constant(254), octet, octet),
    fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), octet, octet),
    fc.tuple(fc.integer({ min: 224, max: 255 }), octet, octet, octet),
  );

  it('never inside, however the address is dressed', () => {
    fc.assert(
      fc.property(inside, (bytes) => {
        const [a, b, c, d] = bytes.map((byte) => byte.toString(16).padStart(2, '0'));
        const plain = bytes.join('.');
        const dressed = [
          plain,
          `::ffff:${plain}`,
          `::ffff:${a}${b}:${c}${d}`,
          `64:ff9b::${plain}`,
          `::${plain}`,
          `2002:${a}${b}:${c}${d}::1`,
        ];
        expect(dressed.filter((address) => isAllowedAddress(address, []))).toEqual([]);
      }),
    );
  });

  it('agrees with itself on an address as a URL spells it', () => {
    fc.assert(
      fc.property(fc.ipV4Extended(), (spelled) => {
        const { hostname } = new URL(`http://${spelled}/`);
        const literal = literalAddress(hostname);
        expect(literal).toBe(hostname);
      }),
    );
  });

  it('opens what the operator names and nothing beside it', () => {
    const allow = cidrs('127.0.0.0/8, ::1/128,10.1.0.0/16');
    expect(['127.0.0.1', '::ffff:127.0.0.1', '::1', '10.1.2.3'].filter((address) => !isAllowedAddress(address, allow))).toEqual([]);
    expect(['10.2.0.1', '::2', '192.168.0.1', 'fe80::1'].filter((address) => isAllowedAddress(address, allow))).toEqual([]);
  });
});

describe('a literal address in a URL', () => {
  it.each([
    ['http://127.1/', '127.0.0.1'],
    ['http://2130706433/', '127.0.0.1'],
    ['http://0x7f.0.0.1/', '127.0.0.1'],
    ['http://[::1]:80/', '::1'],
    ['http://[::ffff:127.0.0.1]/', '::ffff:7f00:1'],
    ['http://localhost./', '127.0.0.1'],
    ['http://LOCALHOST/', '127.0.0.1'],
    ['http://app.localhost/', '127.0.0.1'],
    ['http://example.com/', undefined],
  ])('%s is %s', (url, expected) => {
    expect(literalAddress(new URL(url).hostname)).toBe(expected);
  });
});

describe('EGRESS_ALLOW', () => {
  it('is a list of networks, or refused', () => {
    expect(parseCidrs('')).toEqual([]);
    expect(parseCidrs(' 10.0.0.0/8 , fd00::/8 ')).toHaveLength(2);
    for (const text of ['10.0.0.1', '10.0.0.0/33', 'all', '10.0.0.0/8;fd00::/8']) expect(parseCidrs(text)).toBeUndefined();
  });
});
