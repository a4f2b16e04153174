import type { Clock } from '@isthmus/chassis';
import type { Bus, Passports } from '@isthmus/messaging';
import { authz, type Caller } from '@isthmus/protocol';
import { decodeJwt } from 'jose';

/** A passport with less time left than this may have ended when the other service looks at it. */
const SPARE_MS = 5_000;

/**
 * The caller's passport for as long as its request lasts. The gateway hands passports out until shortly before they end, and
 * a call may wait for longer, or while somebody's rights change: then authz issues another one, with the rights the principal
 * has by then.
 */
export class CallerPassport {
  private expiresAt: number | undefined;
  private current: Caller;

  constructor(
    private readonly bus: Bus,
    private readonly clock: Clock,
    private readonly passports: Pick<Passports, 'isCurrent'>,
    readonly caller: Caller,
    private present: string,
  ) {
    this.current = caller;
  }

  async token(): Promise<string> {
    this.expiresAt ??= (decodeJwt(this.present).exp ?? 0) * 1_000;
    const isGood = this.expiresAt - this.clock.now() > SPARE_MS && this.passports.isCurrent(this.current);
    if (this.caller.kind !== 'principal' || isGood) return this.present;
    const { tenant, workspace, principal } = this.caller;
    const { token, caller, expiresInMs } = await this.bus.call(authz.delegate, { for: 'principal', tenant, workspace, principal });
    this.present = token;
    this.current = caller;
    this.expiresAt = this.clock.now() + expiresInMs;
    return token;
  }
}
