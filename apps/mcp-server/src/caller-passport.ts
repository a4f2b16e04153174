import type { Clock } from '@isthmus/chassis';
import type { Bus } from '@isthmus/messaging';
import { authz, type Caller } from '@isthmus/protocol';
import { decodeJwt } from 'jose';

/** A passport with less time left than this may have ended when the other service looks at it. */
const SPARE_MS = 5_000;

/**
 * The caller's passport for as long as its request lasts. The gateway hands passports out until shortly before they end, and
 * a call may wait for longer: then authz issues another one, with the rights the principal has by then.
 */
export class CallerPassport {
  private expiresAt: number | undefined;

  constructor(
    private readonly bus: Bus,
    private readonly clock: Clock,
    readonly caller: Caller,
    private present: string,
  ) {}

  async token(): Promise<string> {
    this.expiresAt ??= (decodeJwt(this.present).exp ?? 0) * 1_000;
    if (this.caller.kind !== 'principal' || this.expiresAt - this.clock.now() > SPARE_MS) return this.present;
    const { tenant, workspace, principal } = this.caller;
    const { token, expiresInMs } = await this.bus.call(authz.delegate, { for: 'principal', tenant, workspace, principal });
    this.present = token;
    this.expiresAt = this.clock.now() + expiresInMs;
    return token;
  }
}
