import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { Bus, Passports } from '@isthmus/messaging';
import { authz, type Caller } from '@isthmus/protocol';
import { LRUCache } from 'lru-cache';

const MARGIN_MS = 15_000;

export type Place = { readonly tenant: string; readonly workspace: string };
type Known = { readonly caller: Caller; readonly passport: string; readonly until: number };

/** Passports the gateway itself reads runs with, one per workspace, so that a watched run is read once for all its clients. (traps.md 17) */
@Injectable()
export class ServicePassports {
  private readonly known = new LRUCache<string, Known>({ max: 5_000 });
  private readonly asking = new Map<string, Promise<string>>();

  constructor(
    private readonly bus: Bus,
    private readonly passports: Passports,
    private readonly clock: Clock,
  ) {}

  async reader(place: Place): Promise<string> {
    const key = JSON.stringify([place.tenant, place.workspace]);
    const known = this.known.get(key);
    if (known && known.until > this.clock.monotonic() && this.passports.isCurrent(known.caller)) return known.passport;
    const asking = this.asking.get(key) ?? this.ask(key, place);
    this.asking.set(key, asking);
    return asking;
  }

  private async ask(key: string, { tenant, workspace }: Place): Promise<string> {
    const asked = this.clock.monotonic();
    try {
      const given = await this.bus.call(authz.delegate, { for: 'service', service: 'gateway', tenant, workspace, scopes: ['runs:read'] });
      this.known.set(key, { caller: given.caller, passport: given.token, until: asked + given.expiresInMs - MARGIN_MS });
      return given.token;
    } finally {
      this.asking.delete(key);
    }
  }
}
