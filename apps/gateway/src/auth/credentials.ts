import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { Bus, Passports } from '@isthmus/messaging';
import { authz } from '@isthmus/protocol';
import { LRUCache } from 'lru-cache';
import type { Asker } from './asker.js';

/** A passport is used until this long before its end: what it is sent along with still has to arrive and be checked. */
const MARGIN_MS = 15_000;
const MAX_KNOWN = 10_000;

type Known = { readonly asker: Asker; readonly until: number };

/**
 * Turns bearer tokens into passports. A passport is kept under the token's hash until shortly before it ends, or until the
 * rights of its tenant change; while nobody tells us about changes, authz is asked every time. (traps.md 1)
 */
@Injectable()
export class Credentials {
  private readonly known = new LRUCache<string, Known>({ max: MAX_KNOWN });
  /** Requests with one token that arrive together ask once. */
  private readonly asking = new Map<string, Promise<Asker>>();

  constructor(
    private readonly bus: Bus,
    private readonly passports: Passports,
    private readonly clock: Clock,
  ) {}

  /** @throws WopError `unauthenticated`, `key_expired`, `key_revoked`; `service_unavailable` when authz is out of reach */
  async asker(token: string): Promise<Asker> {
    const key = createHash('sha256').update(token).digest('base64');
    const known = this.known.get(key);
    if (known && this.isGood(known)) return known.asker;
    const asking = this.asking.get(key) ?? this.ask(key, token);
    this.asking.set(key, asking);
    return asking;
  }

  private isGood({ asker, until }: Known): boolean {
    return until > this.clock.monotonic() && this.passports.isFresh && this.passports.isCurrent(asker.caller);
  }

  private async ask(key: string, token: string): Promise<Asker> {
    const asked = this.clock.monotonic();
    try {
      const { token: passport, caller, expiresInMs } = await this.bus.call(authz.authenticate, { credential: { type: 'bearer', token } });
      const asker: Asker = { caller, passport, renew: () => this.asker(token) };
      this.known.set(key, { asker, until: asked + expiresInMs - MARGIN_MS });
      return asker;
    } catch (error) {
      this.known.delete(key);
      throw error;
    } finally {
      this.asking.delete(key);
    }
  }
}
