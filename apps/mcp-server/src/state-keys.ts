import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { Postgres } from '@isthmus/db';

export type StateKey = { readonly kid: string; readonly secret: Uint8Array };

/** Unknown key ids may be asked of the database this often: another replica may have added one, or somebody invents them. */
const RELOAD_MS = 1_000;
const FIRST = '1';

/** The keys that seal `requestState`, shared by all replicas. The newest one seals, every one opens. */
@Injectable()
export class StateKeys {
  private known: readonly StateKey[] = [];
  private loadedAt = Number.NEGATIVE_INFINITY;
  private loading: Promise<void> | undefined;

  constructor(
    private readonly db: Postgres,
    private readonly clock: Clock,
  ) {}

  async newest(): Promise<StateKey> {
    if (this.known.length === 0) await this.load();
    const [newest] = this.known;
    if (!newest) throw new Error('there is no key to seal a requestState with');
    return newest;
  }

  async byId(kid: string): Promise<StateKey | undefined> {
    const find = (): StateKey | undefined => this.known.find((key) => key.kid === kid);
    if (!find() && this.clock.monotonic() - this.loadedAt >= RELOAD_MS) await this.load();
    return find();
  }

  private load(): Promise<void> {
    this.loading ??= this.read().finally(() => {
      this.loading = undefined;
    });
    return this.loading;
  }

  private async read(): Promise<void> {
    this.loadedAt = this.clock.monotonic();
    this.known = await this.all();
    if (this.known.length > 0) return;
    // Replicas that start together all try; the primary key lets one of them win, and all read what it wrote.
    await this.db.run`
      insert into mcp_server.state_keys (kid, secret, created_at) values (${FIRST}, ${randomBytes(32)}, ${this.clock.date()})
      on conflict (kid) do nothing`;
    this.known = await this.all();
  }

  private all(): Promise<StateKey[]> {
    return this.db.rows<StateKey>`select kid, secret from mcp_server.state_keys order by created_at desc, kid desc`;
  }
}
