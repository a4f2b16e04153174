import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Clock, Ids, Logger } from '@isthmus/chassis';
import { Postgres } from '@isthmus/db';
import { INTERVAL, sealNext } from './audit-checkpoints.js';
import { AuditSigner } from './audit-signer.js';

const SWEEP_MS = 30_000;
/** An entry is sealed once it is this old: with the sweep's own period far below what INTERVAL promises. */
const SETTLED_MS = 60_000;
/** Of one chain in one go, so that a long backlog of one tenant does not hold up the others. */
const MAX_IN_A_ROW = 20;

/** Seals the chains that have something to seal. Replicas sweep side by side: a chain is sealed by one at a time. */
@Injectable()
export class AuditSealer implements OnApplicationBootstrap, OnModuleDestroy {
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> = Promise.resolve();

  constructor(
    private readonly db: Postgres,
    private readonly signer: AuditSigner,
    private readonly clock: Clock,
    private readonly ids: Ids,
    private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.#timer = setInterval(() => {
      this.#sweeping = this.#sweeping
        .then(() => this.sweep())
        .catch((error: unknown) => this.logger.warn('audit chains could not be sealed and will be tried again', { error }));
    }, SWEEP_MS);
  }

  async onModuleDestroy(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sweeping;
  }

  /** Seals every chain with an entry that has waited, or with an interval full of them. */
  async sweep(): Promise<void> {
    const before = new Date(this.clock.now() - SETTLED_MS);
    const due = await this.db.rows<{ tenant: string | null }>`select tenant from authz.audit_chains_due(${before}, ${INTERVAL.entries})`;
    for (const { tenant } of due) await this.seal(tenant ?? undefined);
  }

  /** Seals what one chain has to seal. Each checkpoint goes to the log as well: that copy is out of the database's reach. */
  async seal(tenant: string | undefined): Promise<void> {
    const key = await this.signer.key();
    for (let done = 0; done < MAX_IN_A_ROW; done += 1) {
      const at = this.clock.date();
      const id = `cp_${this.ids.opaque(16)}`;
      const sealing = await (tenant === undefined
        ? this.db.transaction((tx) => sealNext(tx, tenant, key, id, at))
        : this.db.asTenant(tenant, (tx) => sealNext(tx, tenant, key, id, at)));
      if (sealing.is === 'broken') this.logger.error('an audit chain is not as it was written and is not sealed', { tenant });
      if (sealing.is !== 'sealed') return;
      this.logger.info('audit checkpoint', { tenant, ...sealing.checkpoint, ts: at.toISOString() });
    }
  }
}
