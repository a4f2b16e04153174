import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { CONFIG, Logger } from '@isthmus/chassis';
import { Bell, Bus, Passports } from '@isthmus/messaging';
import { BELLS, engine, isWopError } from '@isthmus/protocol';
import { type Place, ServicePassports } from '../auth/service-passports.js';
import type { Config } from '../config.js';
import { readPage } from './read-page.js';
import { RunReader, type Watcher } from './run-reader.js';

/** Most runs asked for in one call. (the contract's bound) */
const HEADS_PER_CALL = 5_000;

export type WatchedRun = Place & { readonly runId: string };
/** A watcher with rights of its own, that is told when they may have changed, and when this process stops. */
export type Client = Watcher & { recheck(): void; end(): void };
type Watched = { readonly run: WatchedRun; readonly reader: RunReader<Client>; readonly stop: () => void };

export type Watching = {
  /** The client has read everything before `next` by itself: from here on it is told. */
  readonly startAt: (next: number) => void;
  readonly leave: () => void;
};

/**
 * Every watched run is heard of once and read once, however many clients watch it: its bell says when, and once a second the
 * heads of all of them are asked for in one call, so that a lost bell costs a second. (traps.md 3 and 17)
 */
@Injectable()
export class RunWatch implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly watched = new Map<string, Watched>();
  private timer: NodeJS.Timeout | undefined;
  private isAsking = false;
  private isStopping = false;
  private stopHearing: () => void = () => undefined;

  constructor(
    private readonly bus: Bus,
    private readonly bell: Bell,
    private readonly servicePassports: ServicePassports,
    private readonly passports: Passports,
    private readonly logger: Logger,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => void this.askHeads(), this.config.WATCH_POLL_MS);
    this.stopHearing = this.passports.onRevoked((tenant) => this.each((client) => client.recheck(), tenant));
  }

  /** Before connections are waited for: a stream of a quiet run would hold them open for as long as it likes. */
  onModuleDestroy(): void {
    this.isStopping = true;
    clearInterval(this.timer);
    this.stopHearing();
    this.each((client) => client.end());
  }

  /**
   * The bell is listened to before this returns, on the connection that reads go out on: whatever is appended after a read that
   * follows this call is heard of. So a client joins first and reads then, and nothing falls between the two.
   */
  join(run: WatchedRun, client: Client): Watching {
    // Nobody has looked yet whether this client may see the run, so readers are apart for each place that asks.
    const key = JSON.stringify([run.runId, run.tenant, run.workspace]);
    const { reader } = this.watched.get(key) ?? this.begin(key, run);
    reader.join(client);
    if (this.isStopping) client.end();
    return { startAt: (next) => reader.startAt(next), leave: () => this.leave(key, client) };
  }

  /** How many runs have a reader now. */
  get size(): number {
    return this.watched.size;
  }

  /** How many clients watch them. */
  get clients(): number {
    return [...this.watched.values()].reduce((sum, { reader }) => sum + reader.watchers.size, 0);
  }

  private begin(key: string, run: WatchedRun): Watched {
    const reader = new RunReader<Client>(
      async (from) => readPage(this.bus, await this.servicePassports.reader(run), run.runId, from),
      isGone,
    );
    const watched: Watched = { run, reader, stop: this.bell.listen(BELLS.run.subject(run.runId), () => reader.poke()) };
    this.watched.set(key, watched);
    return watched;
  }

  private leave(key: string, client: Client): void {
    const watched = this.watched.get(key);
    if (!watched) return;
    watched.reader.leave(client);
    if (watched.reader.watchers.size > 0) return;
    watched.stop();
    this.watched.delete(key);
  }

  private async askHeads(): Promise<void> {
    if (this.isAsking || this.watched.size === 0) return;
    this.isAsking = true;
    try {
      const runIds = [...new Set([...this.watched.values()].map(({ run }) => run.runId))];
      const heads = new Map<string, number>();
      for (let at = 0; at < runIds.length; at += HEADS_PER_CALL) {
        const answer = await this.bus.call(engine.runHeads, { runIds: runIds.slice(at, at + HEADS_PER_CALL) });
        for (const { runId, head } of answer.heads) heads.set(runId, head);
      }
      for (const { run, reader } of this.watched.values()) reader.heardOf(heads.get(run.runId) ?? -1);
    } catch (error) {
      this.logger.debug('the heads of watched runs could not be asked for', { error: (error as Error).message });
    } finally {
      this.isAsking = false;
    }
  }

  private each(tell: (client: Client) => void, tenant?: string): void {
    for (const { run, reader } of [...this.watched.values()]) {
      if (tenant !== undefined && run.tenant !== tenant) continue;
      for (const client of [...reader.watchers]) tell(client);
    }
  }
}

const isGone = (error: unknown): boolean => isWopError(error) && !error.retriable && error.status < 500;
