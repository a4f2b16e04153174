import { Injectable } from '@nestjs/common';
import { Logger } from '@isthmus/chassis';
import { Postgres } from '@isthmus/db';
import { type authz, type Parsed, WopError } from '@isthmus/protocol';
import type { AuditFact } from './audit-chain.js';
import { appendAudit, chainOf } from './audit-store.js';

/** Of the pool's five connections: a flood of refusals must leave some to those who authenticate. */
const WRITERS = 2;
const MAX_WAITING = 10_000;

type Batch = { readonly tenant: string | undefined; facts: AuditFact[]; readonly done: PromiseWithResolvers };
type PromiseWithResolvers = { readonly promise: Promise<void>; readonly resolve: () => void; readonly reject: (error: unknown) => void };

/** The audit log of the host: what is recorded while a chain is being written becomes that chain's next batch. */
@Injectable()
export class AuditLog {
  /** In order of arrival, one batch per chain. */
  readonly #waiting = new Map<string, Batch>();
  readonly #writing = new Set<string>();
  #waitingFacts = 0;

  constructor(
    private readonly db: Postgres,
    private readonly logger: Logger,
  ) {}

  /** Records what services report, each in the chain of its tenant. A report without a readable time is of `now`. */
  async recordAll(reports: Parsed<typeof authz.recordAudit>['entries'], now: Date): Promise<void> {
    const timeOf = (at: string): string => (Number.isNaN(Date.parse(at)) ? now.toISOString() : at);
    await Promise.all(reports.map(({ tenant, at, type, facts }) => this.record(tenant, [{ at: timeOf(at), type, facts }])));
  }

  /** Resolves when the facts are committed to the chain of `tenant`, or of the host when there is none. */
  record(tenant: string | undefined, facts: readonly AuditFact[]): Promise<void> {
    if (this.#waitingFacts + facts.length > MAX_WAITING) {
      throw new WopError('service_unavailable', 'More is being audited than can be written.');
    }
    const chain = chainOf(tenant);
    const batch = this.#waiting.get(chain) ?? { tenant, facts: [], done: withResolvers() };
    batch.facts.push(...facts);
    this.#waiting.set(chain, batch);
    this.#waitingFacts += facts.length;
    // After this turn, so that what is recorded together is written together.
    queueMicrotask(() => this.#write());
    return batch.done.promise;
  }

  /** Starts writers for the chains that have something waiting and no writer yet. */
  #write(): void {
    for (const [chain, batch] of this.#waiting) {
      if (this.#writing.size >= WRITERS) return;
      if (this.#writing.has(chain)) continue;
      this.#waiting.delete(chain);
      this.#waitingFacts -= batch.facts.length;
      this.#writing.add(chain);
      void this.#append(batch)
        .then(batch.done.resolve, batch.done.reject)
        .finally(() => {
          this.#writing.delete(chain);
          this.#write();
        });
    }
  }

  async #append({ tenant, facts }: Batch): Promise<void> {
    try {
      if (tenant === undefined) await this.db.transaction((tx) => appendAudit(tx, tenant, facts));
      else await this.db.asTenant(tenant, (tx) => appendAudit(tx, tenant, facts));
    } catch (error) {
      this.logger.error('the audit log could not be written', { tenant, entries: facts.length, error });
      throw error;
    }
  }
}

function withResolvers(): PromiseWithResolvers {
  let resolve = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  // A failure is logged by the writer; whoever asked to hear of it does.
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}
