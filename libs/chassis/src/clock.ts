/** What time it is. Core code is given a time instead of a clock. */
export abstract class Clock {
  /** Milliseconds since 1970, by the database's clock: hosts may be minutes apart. (traps.md 2) */
  abstract now(): number;
  /** Milliseconds since some moment; never jumps. For durations and the ends of leases. */
  abstract monotonic(): number;

  date(): Date {
    return new Date(this.now());
  }
}

/** The host's time plus a measured offset. It runs on the monotonic clock, so that setting the host's clock changes nothing. */
export class SystemClock extends Clock {
  #offset = 0;

  override now(): number {
    return Math.round(performance.timeOrigin + performance.now() + this.#offset);
  }

  override monotonic(): number {
    return performance.now();
  }

  /**
   * Asks `query` for the milliseconds the database has, a few times, and believes the fastest answer: the error is at most
   * half of its round trip. A difference within that error is noise and changes nothing.
   */
  async measureOffset(query: () => Promise<number>, samples = 3): Promise<{ offsetMs: number; errorMs: number }> {
    let best: { offsetMs: number; errorMs: number } | undefined;
    for (let sample = 0; sample < samples; sample += 1) {
      const sent = performance.now();
      const theirs = await query();
      const errorMs = (performance.now() - sent) / 2;
      if (!Number.isFinite(theirs)) throw new Error('The clock of the database gave no number.');
      if (!best || errorMs < best.errorMs) best = { offsetMs: theirs - (performance.timeOrigin + sent + errorMs), errorMs };
    }
    if (!best) throw new Error('At least one sample is needed.');
    if (Math.abs(best.offsetMs - this.#offset) > best.errorMs) this.#offset = best.offsetMs;
    return best;
  }
}
