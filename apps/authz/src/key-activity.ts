import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Clock, Logger } from '@isthmus/chassis';
import { Postgres } from '@isthmus/db';
import { AuditLog } from './audit-log.js';
import { appendAudit } from './audit-store.js';
import type { KnownKey } from './directory.js';
import { recent } from './recent.js';

const EVERY_MS = 60_000;

export type Refusal = 'unknown' | 'secret-wrong' | 'revoked' | 'expired' | 'principal-disabled';

/**
 * What is remembered of keys being used or refused: once a minute for each key, behind the answer. Refusals of keys that nobody
 * has go to the host's chain, one a minute in all, so that a flood of them fills nothing. (traps.md 23)
 */
@Injectable()
export class KeyActivity implements OnModuleDestroy {
  readonly #seen: ReturnType<typeof recent<true>>;
  readonly #owed = new Set<Promise<void>>();

  constructor(
    private readonly db: Postgres,
    private readonly audit: AuditLog,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {
    this.#seen = recent(clock, EVERY_MS);
  }

  used({ keyId, tenant, principal, lastUsedAt }: KnownKey): void {
    const at = this.clock.date();
    const before = new Date(at.getTime() - EVERY_MS);
    if (lastUsedAt !== undefined && lastUsedAt > before.getTime()) return;
    if (!this.#isFirst(`used ${keyId}`)) return;
    this.#owe(
      this.db.asTenant(tenant, async (tx) => {
        // Another replica may have been first: only one of them moves the time, and only that one records. Rides api_keys_pkey.
        const moved = await tx.run`
          update authz.api_keys set last_used_at = ${at}
          where key_id = ${keyId} and tenant = ${tenant} and (last_used_at is null or last_used_at <= ${before})`;
        if (moved > 0) await appendAudit(tx, tenant, [{ at: at.toISOString(), type: 'key.used', facts: { keyId, principal } }]);
      }),
    );
  }

  /** @param key what is stored under the key's id, when there is something */
  refused(reason: Refusal, key?: KnownKey): void {
    if (!this.#isFirst(`refused ${key?.keyId ?? ''}`)) return;
    const facts = { reason, ...(key && { keyId: key.keyId, principal: key.principal }) };
    this.#owe(this.audit.record(key?.tenant, [{ at: this.clock.date().toISOString(), type: 'key.refused', facts }]));
  }

  /** Resolves when everything that was noted is written. */
  async settled(): Promise<void> {
    while (this.#owed.size > 0) await Promise.all(this.#owed);
  }

  onModuleDestroy(): Promise<void> {
    return this.settled();
  }

  #isFirst(what: string): boolean {
    if (this.#seen.has(what)) return false;
    this.#seen.set(what, true);
    return true;
  }

  #owe(work: Promise<void>): void {
    const owed = work
      .catch((error: unknown) => this.logger.warn('what happened to a key could not be recorded', { error }))
      .finally(() => this.#owed.delete(owed));
    this.#owed.add(owed);
  }
}
