import { createHash } from 'node:crypto';
import { Clock, createLogger, Logger } from '@isthmus/chassis';
import { pgPool } from '@isthmus/db';
import { Bus } from '@isthmus/messaging';
import { type BootedService, bootService, FakeClock, type TestDatabase, testDatabase, testNats } from '@isthmus/testing';
import { AppModule } from './app.module.js';
import { Config } from './config.js';
import { mintKey, parseKey } from './keys.js';
import { seedTenants } from './seed.js';

/** Two tenants, the first with two principals; `primary` and `secondary` are keys of one of them. */
export const newKeys = () => ({ primary: mintKey(), secondary: mintKey(), low: mintKey(), other: mintKey() });
export type Keys = ReturnType<typeof newKeys>;

export const specOf = (keys: Keys) => ({
  tenants: [
    {
      id: 'acme',
      workspace: 'main',
      principals: [
        { id: 'user-alice', scopes: 'all' as const, keys: [keys.primary, keys.secondary] },
        { id: 'user-low', scopes: ['runs:read' as const], keys: [keys.low] },
      ],
    },
    { id: 'globex', workspace: 'lab', principals: [{ id: 'user-bob', scopes: 'all' as const, keys: [keys.other] }] },
  ],
});

export const idOf = (key: string): string => parseKey(key)?.keyId ?? '';

/** A well-formed key with the id of `key` and a secret that is not its own. */
export function withWrongSecret(key: string): string {
  const body = `isk_${idOf(key)}_${Buffer.alloc(32, 7).toString('base64url')}`;
  return body + createHash('sha256').update(body).digest('base64url').slice(0, 6);
}

type Pool = ReturnType<typeof pgPool>;

/** A seeded database with a replica of authz on it, in the test's own time; `boot` starts another. */
export class Host {
  readonly clock = new FakeClock();
  readonly keys = newKeys();
  /** Everything authz logs, at the finest level. */
  readonly lines: string[] = [];
  readonly #replicas: BootedService[] = [];
  readonly #pools: Pool[] = [];

  private constructor(readonly database: TestDatabase) {}

  static async start(): Promise<Host> {
    const host = new Host(await testDatabase());
    await seedTenants(host.database.adminUrl, specOf(host.keys));
    await host.boot();
    return host;
  }

  async boot(): Promise<BootedService> {
    const config = Config.parse({ SERVICE_NAME: 'authz', NATS_URL: testNats(), DATABASE_URL: this.database.serviceUrl('authz') });
    const logger = createLogger({ service: 'authz', instance: 'test', level: 'trace' }, { write: (line) => void this.lines.push(line) });
    const replica = await bootService(AppModule.forRoot(config), {
      service: 'authz',
      overrides: [
        [Clock, this.clock],
        [Logger, logger],
      ],
    });
    this.#replicas.push(replica);
    return replica;
  }

  /** The first replica's. */
  get<T>(token: abstract new (...args: never[]) => T): T {
    const [first] = this.#replicas;
    if (!first) throw new Error('no replica');
    return first.app.get(token as unknown as new () => T, { strict: false });
  }

  get bus(): Bus {
    return this.get(Bus);
  }

  pool(url: string): Pool {
    const pool = pgPool(url, { max: 4, onError: () => undefined });
    this.#pools.push(pool);
    return pool;
  }

  async stop(): Promise<void> {
    for (const replica of this.#replicas) await replica.stop();
    for (const pool of this.#pools) await pool.end();
    await this.database.drop();
  }
}
