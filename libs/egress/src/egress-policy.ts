import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Cidr = readonly [Address, number];

/** Networks out of a comma separated list, or undefined when one of them is none. */
export function parseCidrs(text: string): readonly Cidr[] | undefined {
  const parts = text.split(',').map((part) => part.trim());
  try {
    return parts.filter(Boolean).map((part) => ipaddr.parseCIDR(part));
  } catch {
    return undefined;
  }
}

/** Every address there is: for hosts that are a test as a whole. */
export const ANYWHERE: readonly Cidr[] = [ipaddr.parseCIDR('0.0.0.0/0'), ipaddr.parseCIDR('::/0')];

/** The only part of IPv6 that is routed publicly; all else is local, mapped, translated or unassigned. (RFC 4291 §2.4) */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3') as [ipaddr.IPv6, number];
/** A public address that answers only from inside of a cloud: Azure's platform and metadata channel. */
const CLOUD_INTERNAL = new Set(['168.63.129.16']);

/**
 * May this host talk to `address`? Only to public unicast: not loopback, private, link-local, carrier-grade NAT, unique local,
 * metadata, multicast, unspecified, reserved, nor a tunnel (6to4, Teredo, NAT64) that may lead to one of them; besides to what
 * the operator allows. An IPv4 address dressed as IPv6 is judged as the IPv4 address it is.
 */
export function isAllowedAddress(address: string, allow: readonly Cidr[]): boolean {
  if (!ipaddr.isValid(address)) return false;
  const plain = ipaddr.process(address);
  if (allow.some(([network, bits]) => network.kind() === plain.kind() && plain.match([network, bits] as [ipaddr.IPv4, number])))
    return true;
  if (plain.range() !== 'unicast') return false;
  if (plain instanceof ipaddr.IPv6) return plain.match(GLOBAL_UNICAST);
  return !CLOUD_INTERNAL.has(plain.toString());
}

/** The address that a URL's host name spells out, if it does; `localhost` names are loopback whatever a resolver says. (RFC 6761) */
export function literalAddress(hostname: string): string | undefined {
  const bare = hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
  if (bare === 'localhost' || bare.endsWith('.localhost')) return '127.0.0.1';
  return ipaddr.isValid(bare) ? bare : undefined;
}
