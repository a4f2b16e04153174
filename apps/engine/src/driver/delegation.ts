import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { Bus, Passports } from '@isthmus/messaging';
import { authz, type Caller } from '@isthmus/protocol';
import { LRUCache } from 'lru-cache';

/** Passports are renewed this long before they end. */
const MARGIN_MS = 10_000;

type Principal = { readonly tenant: string; readonly workspace: string; readonly principal: string };

/**
 * Passports for effects of runs, in the name of who started them: a parked run acts hours later, and lost rights stop the
 * effect. (traps 24)
 */
@Injectable()
export class Delegation {
  private readonly cached = new LRUCache<string, { token: string; caller: Caller; until: number }>({ max: 10_000 });

  constructor(
    private readonly bus: Bus,
    private readonly passports: Passports,
    private readonly clock: Clock,
  ) {}

  async passport({ tenant, workspace, principal }: Principal): Promise<string> {
    const key = `${tenant}\0${workspace}\0${principal}`;
    const known = this.cached.get(key);
    if (known && known.until > this.clock.monotonic() && this.passports.isCurrent(known.caller)) return known.token;
    const { token, caller, expiresInMs } = await this.bus.call(authz.delegate, { for: 'principal', tenant, workspace, principal });
    this.cached.set(key, { token, caller, until: this.clock.monotonic() + expiresInMs - MARGIN_MS });
    return token;
  }
}
