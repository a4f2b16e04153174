import type { Logger } from './logger.js';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** How a process ends. `exit` is the process's own; tests bring another. */
export class Ending {
  readonly #controller = new AbortController();
  #steps: (() => Promise<void> | void)[] = [];

  constructor(
    private readonly logger: Logger,
    private readonly drainMs: number,
    private readonly exit: (code: number) => void = (code) => process.exit(code),
  ) {}

  /** Aborted when the end begins. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Steps run in the order they were added, all of them within the time for draining. */
  add(step: () => Promise<void> | void): void {
    this.#steps.push(step);
  }

  /**
   * A second signal of the same kind is not caught and ends the process at once. Losing the supervisor's channel counts as a
   * signal, so that a supervisor that was killed leaves nobody behind. What nobody caught ends the process with 1: the
   * supervisor starts a fresh one.
   */
  install(): void {
    for (const signal of SIGNALS) process.once(signal, () => void this.end(signal));
    process.once('disconnect', () => void this.end('disconnect'));
    const fatal = (kind: string) => (error: unknown) => {
      this.logger.error('unexpected fault, the process ends', { kind, error });
      this.exit(1);
    };
    process.on('unhandledRejection', fatal('unhandledRejection'));
    process.on('uncaughtException', fatal('uncaughtException'));
  }

  async end(why: string): Promise<void> {
    if (this.signal.aborted) return;
    this.logger.info('stopping', { why });
    this.#controller.abort();
    const isDone = await this.#withinTime();
    if (isDone) this.logger.info('stopped');
    else this.logger.warn('stopped before everything had ended', { drainMs: this.drainMs });
    this.exit(0);
  }

  async #withinTime(): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<false>((resolve) => {
      timer = setTimeout(resolve, this.drainMs, false);
    });
    try {
      return await Promise.race([this.#run(), tooLate]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #run(): Promise<true> {
    for (const step of this.#steps) {
      try {
        await step();
      } catch (error) {
        this.logger.warn('a part did not end well', { error });
      }
    }
    return true;
  }
}
