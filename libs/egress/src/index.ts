export { Egress, egressDenied, type Resolve } from './egress.js';
export { ANYWHERE, type Cidr, isAllowedAddress, literalAddress, parseCidrs } from './egress-policy.js';
