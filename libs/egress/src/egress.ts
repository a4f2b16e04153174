import { lookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import type { Logger } from '@isthmus/chassis';
import { isWopError, WopError } from '@isthmus/protocol';
import { Agent, buildConnector } from 'undici';
import { type Cidr, isAllowedAddress, literalAddress } from './egress-policy.js';

type Resolved = { readonly address: string; readonly family: number };
export type Resolve = (hostname: string) => Promise<readonly Resolved[]>;

const bySystem: Resolve = (hostname) => lookup(hostname, { all: true, verbatim: true });

const CONNECT_MS = 5_000;

/**
 * The only way out of a service to addresses that others name. A name is resolved once, by us; every address it has must be allowed, and the socket goes
 * to one of these and not to what a second look-up would say (DNS rebinding). A proxy of the environment is not used: it would
 * resolve for itself. (authz.md §10)
 */
export class Egress {
  readonly agent: Agent;

  constructor(
    private readonly allow: readonly Cidr[],
    private readonly logger: Logger,
    private readonly resolve: Resolve = bySystem,
  ) {
    const open = buildConnector({ lookup: this.#lookup, timeout: CONNECT_MS });
    this.agent = new Agent({
      // Calls have a deadline of their own; a tool may be silent for longer than undici's five minutes.
      headersTimeout: 0,
      bodyTimeout: 0,
      connections: 64,
      connect: (options, callback) => {
        const refusal = this.refusalOf(options.hostname);
        if (refusal) callback(refusal, null);
        else open(options, callback);
      },
    });
  }

  /** Why a URL with this host cannot be called, as far as its spelling tells; names are judged when they are connected to. */
  refusalOf(hostname: string): WopError | undefined {
    const literal = literalAddress(hostname);
    return literal === undefined ? undefined : this.#judge(hostname, [literal]);
  }

  /** Looks the name up and judges what it has now: for the moment something is registered, before anything is sent. */
  async check(hostname: string): Promise<WopError | undefined> {
    const refusal = this.refusalOf(hostname);
    if (refusal || literalAddress(hostname) !== undefined) return refusal;
    try {
      await this.#addresses(hostname);
      return undefined;
    } catch (error) {
      return isWopError(error) ? error : egressDenied(hostname, 'unresolvable');
    }
  }

  close(): Promise<void> {
    return this.agent.destroy();
  }

  readonly #lookup: LookupFunction = (hostname, options, done) => {
    void this.#addresses(hostname).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all) done(null, addresses as Resolved[]);
        else done(null, first?.address ?? '', first?.family);
      },
      (error: Error) => done(error, ''),
    );
  };

  async #addresses(hostname: string): Promise<readonly Resolved[]> {
    const addresses = await this.resolve(hostname);
    if (addresses.length === 0) throw new Error('The name has no address.');
    const refusal = this.#judge(
      hostname,
      addresses.map(({ address }) => address),
    );
    if (refusal) throw refusal;
    return addresses;
  }

  /** One address that is not allowed spoils the name: a mixed answer is how a rebinding attack begins. */
  #judge(hostname: string, addresses: readonly string[]): WopError | undefined {
    const isAllowed = addresses.every((address) => isAllowedAddress(address, this.allow));
    this.logger[isAllowed ? 'debug' : 'warn']('egress decided', { decision: isAllowed ? 'allowed' : 'denied', destination: hostname });
    return isAllowed ? undefined : egressDenied(hostname);
  }
}

/** Names the host as it was spelled and nothing that was found out about it. */
export const egressDenied = (hostname: string, reason = 'address'): WopError =>
  new WopError('egress_denied', 'The address of the remote server is not one this host may call.', { host: hostname, reason });
