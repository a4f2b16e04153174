import type { RunEvent } from '@isthmus/protocol';

/** One page of a run's log: what stands from `from` up to but not including `next`. */
export type Page = { readonly from: number; readonly next: number; readonly events: readonly RunEvent[]; readonly isOver: boolean };

/** Who is told about a run. Both calls return at once. */
export type Watcher = {
  offer(page: Page): void;
  /** The run cannot be read any more. */
  abandon(error: unknown): void;
};

type Read = (fromSequence: number) => Promise<Page & { readonly more: boolean }>;

/**
 * Reads one run for everyone who watches it. Knows nothing before the first watcher says where it is; reads on when poked,
 * once at a time, however often it was poked meanwhile. Watchers that are elsewhere in the log see that from the page.
 */
export class RunReader<W extends Watcher = Watcher> {
  readonly #watchers = new Set<W>();
  #next: number | undefined;
  #isPoked = false;
  #isReading = false;

  constructor(
    private readonly read: Read,
    private readonly isGone: (error: unknown) => boolean,
  ) {}

  get watchers(): ReadonlySet<W> {
    return this.#watchers;
  }

  join(watcher: W): void {
    this.#watchers.add(watcher);
  }

  leave(watcher: W): void {
    this.#watchers.delete(watcher);
  }

  /** A watcher has read everything before `next` by itself. A reader that is behind stays there: others may not have. */
  startAt(next: number): void {
    this.#next ??= next;
    if (this.#isPoked) this.poke();
  }

  /** The log may have grown. */
  poke(): void {
    this.#isPoked = true;
    if (!this.#isReading && this.#next !== undefined) void this.#readOn(this.#next);
  }

  /** The log is known to reach up to `head`; pokes when that is news. */
  heardOf(head: number): void {
    if (this.#next !== undefined && head >= this.#next) this.poke();
  }

  async #readOn(from: number): Promise<void> {
    this.#isReading = true;
    try {
      for (let next = from; this.#isPoked && this.#watchers.size > 0; ) {
        this.#isPoked = false;
        const page = await this.read(next);
        next = page.next;
        this.#next = next;
        this.#isPoked ||= page.more;
        for (const watcher of [...this.#watchers]) watcher.offer(page);
      }
    } catch (error) {
      // Out of reach: the next bell or the next heads try again.
      if (this.isGone(error)) for (const watcher of [...this.#watchers]) watcher.abandon(error);
    } finally {
      this.#isReading = false;
    }
  }
}
