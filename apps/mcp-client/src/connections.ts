import type { Clock } from '@isthmus/chassis';
import type { MountSpec } from '@isthmus/protocol';
import { LRUCache } from 'lru-cache';
import type { Breakers } from './breakers.js';
import { type Connection, connect } from './connect.js';
import { disconnected, Exchange, within } from './exchange.js';
import { classify } from './failure.js';
import type { Fetch } from './remote-fetch.js';
import { afterRefusal, approaches, VersionRefusal, versionUnsupported } from './version-policy.js';

/** A mount as far as connections are concerned: whose it is and what its tenant says about the server. */
export type Target = { readonly tenant: string; readonly workspace: string; readonly serverId: string; readonly spec: MountSpec };

/** `uses`: then a connection is made anew, for Node 20 keeps a little of every signal that was derived from its long-lived one. */
export type Limits = { readonly connections: number; readonly idleMs: number; readonly connectMs: number; readonly uses: number };
export const LIMITS: Limits = { connections: 256, idleMs: 300_000, connectMs: 30_000, uses: 10_000 };
/** A server that was found to need a handshake is asked again now and then: it may have been brought up to date. */
const LEGACY_MEMORY_MS = 600_000;

/** One connection and how many exchanges use it; it closes when nobody does and the cache has let go of it. */
class Held {
  #users = 0;
  #uses = 0;
  #isRetired = false;
  #closing: Promise<void> | undefined;

  constructor(readonly ready: Promise<Connection>) {}

  get uses(): number {
    return this.#uses;
  }

  async use(exchange: Exchange): Promise<Connection> {
    this.#uses += 1;
    this.#users += 1;
    try {
      return await exchange.orStop(this.ready);
    } catch (error) {
      this.release();
      throw error;
    }
  }

  release(): void {
    this.#users -= 1;
    void this.#closeIfIdle();
  }

  retire(): Promise<void> {
    this.#isRetired = true;
    return this.#closeIfIdle();
  }

  async #closeIfIdle(): Promise<void> {
    if (!this.#isRetired || this.#users > 0) return;
    this.#closing ??= this.ready.then((connection) => connection.close()).catch(() => undefined);
    await this.#closing;
  }
}

/** The use of a connection by one exchange. `isFresh`: it was opened for this very use. */
export type Lease = { readonly connection: Connection; readonly isFresh: boolean; release(): void; discard(): void };

/**
 * Open connections by tenant, workspace, server and what the mount says: a changed mount gets a new one, and no two tenants
 * ever share one. A failure to connect is not remembered.
 */
export class Connections {
  readonly #open: LRUCache<string, Held>;
  /** Where a handshake was found to be needed. By URL without query: one origin may serve both eras at two paths. */
  readonly #legacy = new LRUCache<string, true>({ max: 10_000, ttl: LEGACY_MEMORY_MS });

  readonly #connecting = new Set<Exchange>();

  constructor(
    private readonly fetch: Fetch,
    private readonly breakers: Breakers,
    private readonly clock: Clock,
    private readonly limits: Limits = LIMITS,
  ) {
    this.#open = new LRUCache({
      max: limits.connections,
      ttl: limits.idleMs,
      ttlAutopurge: true,
      updateAgeOnGet: true,
      dispose: (held) => void held.retire(),
    });
  }

  /** A connection for `exchange`, opened now if there is none. Whoever comes while it is being opened waits for the same one. */
  async lease(target: Target, exchange: Exchange): Promise<Lease> {
    const key = keyOf(target);
    const open = this.#open.get(key);
    const known = open && open.uses < this.limits.uses ? open : undefined;
    const held = known ?? this.#openNew(key, target);
    const connection = await held.use(exchange);
    return { connection, isFresh: !known, release: () => held.release(), discard: () => this.#forget(key, held) };
  }

  /** The server at `url` is not what it was: which era it speaks is found out again. */
  forgetEra(url: string): void {
    this.#legacy.delete(endpointOf(url));
  }

  async close(): Promise<void> {
    for (const exchange of this.#connecting) exchange.stop(closing());
    const held = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(held.map((one) => one.retire()));
  }

  #openNew(key: string, target: Target): Held {
    const held = new Held(this.#connect(target));
    this.#open.set(key, held);
    held.ready.catch(() => this.#forget(key, held));
    return held;
  }

  #forget(key: string, held: Held): void {
    if (this.#open.peek(key) === held) this.#open.delete(key);
  }

  /** Has its own deadline: the first asker's may be shorter than that of those who wait with it. */
  async #connect({ spec }: Target): Promise<Connection> {
    const exchange = new Exchange(this.limits.connectMs);
    this.#connecting.add(exchange);
    const { origin } = new URL(spec.url);
    try {
      const connection = await within(exchange, () => this.#negotiate(spec, exchange));
      this.breakers.answered(origin);
      return connection;
    } catch (error) {
      // Once for all who waited for this connection.
      if (classify(error, exchange, false).is === 'transport' || exchange.stopping.aborted) this.breakers.failed(origin);
      throw error;
    } finally {
      this.#connecting.delete(exchange);
      exchange.end();
    }
  }

  async #negotiate(spec: MountSpec, exchange: Exchange): Promise<Connection> {
    const endpoint = endpointOf(spec.url);
    const isKnownLegacy = this.#legacy.has(endpoint);
    try {
      const connection = await this.#tryInOrder(spec, isKnownLegacy, exchange);
      if (connection.approach.era === 'legacy') this.#legacy.set(endpoint, true);
      return connection;
    } catch (error) {
      if (!this.#legacy.delete(endpoint) || !isKnownLegacy || exchange.stopping.aborted) throw error;
      return this.#tryInOrder(spec, false, exchange);
    }
  }

  async #tryInOrder({ url, versionPolicy }: MountSpec, isKnownLegacy: boolean, exchange: Exchange): Promise<Connection> {
    let left = approaches(versionPolicy, isKnownLegacy);
    let supported: readonly string[] = [];
    let cause: unknown;
    while (left[0]) {
      try {
        return await connect(left[0], url, this.fetch, exchange, this.clock);
      } catch (error) {
        if (!(error instanceof VersionRefusal)) throw error;
        cause = error;
        if (error.supported.length > 0) supported = error.supported;
        left = afterRefusal(left.slice(1), error.supported);
      }
    }
    throw versionUnsupported(versionPolicy, supported, cause);
  }
}

const closing = () => disconnected('This host is stopping.', { reason: 'stopping', sent: false });

const keyOf = ({ tenant, workspace, serverId, spec }: Target): string =>
  JSON.stringify([tenant, workspace, serverId, spec.url, spec.transport, spec.versionPolicy.allow]);

function endpointOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
