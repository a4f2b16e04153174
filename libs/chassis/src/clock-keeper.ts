import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Clock, SystemClock } from './clock.js';
import { Health } from './health.js';
import { Logger } from './logger.js';

const MEASURE_EVERY_MS = 60_000;
const RETRY_EVERY_MS = 1_000;
/** Crystals drift by milliseconds in this time, so a database that is away for a while costs no trust in the clock. */
const TRUSTED_FOR_MS = 10 * MEASURE_EVERY_MS;

/** Keeps the clock by the database's, from the start on; a service whose offset is not known is not ready. (traps.md 2) */
@Injectable()
export class ClockKeeper implements OnApplicationShutdown {
  #measuredAt: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(
    private readonly clock: Clock,
    private readonly health: Health,
    private readonly logger: Logger,
  ) {}

  /**
   * Measures now, then every minute. `query` answers milliseconds since 1970, such as
   * `select extract(epoch from clock_timestamp()) * 1000`. A clock of a test is left alone.
   */
  async follow(query: () => Promise<number>): Promise<void> {
    if (!(this.clock instanceof SystemClock)) return;
    this.health.add('clock', () => {
      if (this.#measuredAt === undefined || performance.now() - this.#measuredAt > TRUSTED_FOR_MS)
        throw new Error('The offset to the clock of the database is not known.');
    });
    await this.#measure(this.clock, query);
  }

  onApplicationShutdown(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  async #measure(clock: SystemClock, query: () => Promise<number>): Promise<void> {
    let isMeasured = false;
    try {
      const { offsetMs, errorMs } = await clock.measureOffset(query);
      this.#measuredAt = performance.now();
      isMeasured = true;
      this.logger.debug('clock measured', { offsetMs: Math.round(offsetMs), errorMs: Math.round(errorMs * 10) / 10 });
    } catch (error) {
      this.logger.warn('the clock of the database could not be read', { error });
    }
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => void this.#measure(clock, query), isMeasured ? MEASURE_EVERY_MS : RETRY_EVERY_MS);
    this.#timer.unref();
  }
}
