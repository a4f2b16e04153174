import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { Postgres, type Tx } from '@isthmus/db';
import { Bell } from '@isthmus/messaging';
import { type authz, BELLS, type Output, type Scope } from '@isthmus/protocol';
import { revokeKey, setScopes } from './revocation-store.js';

/** Taking rights away. What was revoked is in the database before anyone hears of it; the bell only makes it faster. */
@Injectable()
export class Revocations {
  constructor(
    private readonly db: Postgres,
    private readonly bell: Bell,
    private readonly clock: Clock,
  ) {}

  revokeKey(tenant: string, keyId: string): Promise<boolean> {
    return this.#change(tenant, (tx) => revokeKey(tx, tenant, keyId, this.clock.date()));
  }

  setScopes(tenant: string, principal: string, scopes: readonly Scope[]): Promise<boolean> {
    return this.#change(tenant, (tx) => setScopes(tx, tenant, principal, scopes, this.clock.date()));
  }

  async since(epoch: number | undefined): Promise<Output<typeof authz.revocationsSince>> {
    const rows = await this.db.rows<{ head: bigint; tenant: string | null; epoch: bigint | null }>`
      select * from authz.revocations_since(${epoch ?? null}::bigint)`;
    return {
      epoch: Number(rows[0]?.head ?? 0),
      tenants: rows.flatMap(({ tenant, epoch }) => (tenant === null || epoch === null ? [] : [{ tenant, epoch: Number(epoch) }])),
    };
  }

  async #change(tenant: string, work: (tx: Tx) => Promise<boolean>): Promise<boolean> {
    const hasChanged = await this.db.asTenant(tenant, work);
    if (hasChanged) this.bell.ring(BELLS.revoked.subject(tenant));
    return hasChanged;
  }
}
