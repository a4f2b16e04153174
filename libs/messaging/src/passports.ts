import { Clock, Logger } from '@isthmus/chassis';
import { authz, BELLS, Caller, PASSPORT, WopError } from '@isthmus/protocol';
import { Inject, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { Bell } from './bell.js';
import { Bus } from './bus.js';
import { MESSAGING_OPTIONS, type MessagingOptions } from './nats.js';

const POLL_MS = 1_000;
/** Without an answer for this long a verified credential is no longer taken from a cache. */
const FRESH_MS = 2_000;
/** Services hear of a change one after the other: until all have, what was issued just before it is still taken inside. */
const SKEW_MS = 900;

/**
 * Verifies passports and knows which are too old: every second it asks authz whose rights changed; the bell only makes it
 * faster. (revocation is felt everywhere within two seconds)
 */
@Injectable()
export class Passports implements OnModuleInit, OnModuleDestroy {
  private readonly verified = new LRUCache<string, { caller: Caller; expiresAt: number }>({ max: 10_000 });
  private readonly minimumEpoch = new Map<string, number>();
  /** What was the minimum before, and until when (on the monotonic clock) that is enough. */
  private readonly formerly = new Map<string, { readonly epoch: number; readonly until: number }>();
  private readonly listeners = new Set<(tenant: string) => void>();
  private keys: { ids: ReadonlySet<string>; resolve: ReturnType<typeof createLocalJWKSet> } | undefined;
  /** From the beginning: a service that was just started does not know what was revoked a moment ago. */
  private epoch = 0;
  private heardAt = Number.NEGATIVE_INFINITY;
  private timer: NodeJS.Timeout | undefined;
  private asking: Promise<void> | undefined;
  private isOverdue = false;
  private stopListening: () => void = () => undefined;

  constructor(
    @Inject(MESSAGING_OPTIONS) private readonly options: MessagingOptions,
    private readonly bus: Bus,
    private readonly bell: Bell,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    if (!this.options.passports) return;
    this.stopListening = this.bell.listen(BELLS.revoked.all, () => void this.poll(true));
    this.timer = setInterval(() => void this.poll(), POLL_MS);
    void this.poll();
  }

  onModuleDestroy(): void {
    clearInterval(this.timer);
    this.stopListening();
  }

  /** Do we know of every revocation that is older than two seconds? */
  get isFresh(): boolean {
    return this.clock.monotonic() - this.heardAt < FRESH_MS;
  }

  /** Are the rights in `caller` still those authz would give? */
  isCurrent(caller: Caller): boolean {
    return caller.epoch >= (this.minimumEpoch.get(caller.tenant) ?? 0);
  }

  /** Calls `on` with the tenant whose keys, scopes or memberships changed. @returns stops it */
  onRevoked(on: (tenant: string) => void): () => void {
    this.listeners.add(on);
    return () => this.listeners.delete(on);
  }

  /** @throws WopError `unauthenticated` when forged, expired or out of date */
  async verify(token: string): Promise<Caller> {
    const known = this.verified.get(token);
    const found = known && known.expiresAt > this.clock.now() ? known : await this.check(token);
    if (!this.isCurrent(found.caller) && !this.wasCurrent(found.caller))
      throw new WopError('unauthenticated', 'The rights of this credential have changed. Authenticate again.');
    return found.caller;
  }

  /** Was it good until a moment ago? Whoever asks has not heard yet, and another who has must not fail its work. */
  private wasCurrent({ tenant, epoch }: Caller): boolean {
    const former = this.formerly.get(tenant);
    return former !== undefined && epoch >= former.epoch && this.clock.monotonic() < former.until;
  }

  private async check(token: string): Promise<{ caller: Caller; expiresAt: number }> {
    try {
      const { payload } = await jwtVerify(token, await this.keyring(token), {
        issuer: PASSPORT.issuer,
        audience: PASSPORT.audience,
        algorithms: [PASSPORT.algorithm],
        currentDate: this.clock.date(),
      });
      const entry = { caller: Caller.parse(payload['caller']), expiresAt: (payload.exp ?? 0) * 1_000 };
      this.verified.set(token, entry);
      return entry;
    } catch (error) {
      if (error instanceof WopError) throw error;
      throw new WopError('unauthenticated', 'The passport is not valid.', undefined, { cause: error });
    }
  }

  /** The public keys; asked again when a passport names one that is not known yet. */
  private async keyring(token: string): Promise<ReturnType<typeof createLocalJWKSet>> {
    const kid = decodeProtectedHeader(token).kid ?? '';
    if (!this.keys?.ids.has(kid)) {
      const { keys } = await this.bus.call(authz.publicKeys, {});
      const set = { keys } as unknown as JSONWebKeySet;
      this.keys = { ids: new Set(set.keys.map((key) => key.kid ?? '')), resolve: createLocalJWKSet(set) };
    }
    return this.keys.resolve;
  }

  /** A bell that rings while an answer is under way may speak of what that answer does not know yet: ask once more. */
  private poll(isNews = false): Promise<void> {
    if (this.asking) {
      this.isOverdue ||= isNews;
      return this.asking;
    }
    this.asking = this.ask().finally(() => {
      this.asking = undefined;
      if (this.isOverdue) {
        this.isOverdue = false;
        void this.poll();
      }
    });
    return this.asking;
  }

  private async ask(): Promise<void> {
    const asked = this.clock.monotonic();
    try {
      const answer = await this.bus.call(authz.revocationsSince, { epoch: this.epoch });
      const wasInformed = this.heardAt !== Number.NEGATIVE_INFINITY;
      this.heardAt = asked;
      this.epoch = answer.epoch;
      for (const { tenant, epoch } of answer.tenants) {
        if (wasInformed) this.formerly.set(tenant, { epoch: this.minimumEpoch.get(tenant) ?? 0, until: this.clock.monotonic() + SKEW_MS });
        this.minimumEpoch.set(tenant, epoch);
        for (const listener of this.listeners) listener(tenant);
      }
    } catch (error) {
      this.logger.debug('authz did not say whose rights changed', { error: (error as Error).message });
    }
  }
}
