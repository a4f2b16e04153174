// The whole stack: Postgres, NATS and five separate service processes, started, kept alive and stopped.
// `npm start` runs one; every e2e test file may run its own.
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fixturesFor, seedFixtures } from '../fixtures.mjs';
import { loadKeys, seed } from '../keys.mjs';
import { deploy } from '../migrate.mjs';
import { inDev, root } from '../paths.mjs';
import { serviceUrl } from '../roles.mjs';
import { Ledger } from './ledger.mjs';
import { findNats, requireNats, startNats } from './nats.mjs';
import { freePort } from './ports.mjs';
import { requirePostgres, startPostgres } from './postgres.mjs';
import { Supervised } from './supervised.mjs';

export const SERVICES = ['gateway', 'authz', 'engine', 'mcp-client', 'mcp-server'];

/** What a service may see of the surroundings; above all not the administrator's DATABASE_URL. */
const PASSED_ON = /^(PATH|HOME|LANG|TZ|TMPDIR|NODE_OPTIONS|NODE_EXTRA_CA_CERTS|LOG_LEVEL|EGRESS_ALLOW|(OTEL|OPENWOP|ISTHMUS)_.+)$/;
const LOOPBACK = '127.0.0.0/8,::1/128';

/** Starts everything and resolves when it answers. See host.d.mts for the options. */
export async function startHost(options = {}) {
  const host = new Host(options);
  try {
    await host.start();
    return host;
  } catch (error) {
    await host.stop();
    throw error;
  }
}

export class Host {
  #options;
  #step;
  #ledger;
  #watch;
  #backing = {};
  #processes = [];
  #seeding;
  #isStopping = false;
  /** It has answered once. */
  isUp = false;

  constructor(options) {
    this.#options = options;
    this.#step = options.step ?? ((_label, work) => work());
    const moved = () => this.#isStopping || options.onChange?.(this);
    this.#ledger = options.ledger ?? new Ledger('host');
    this.#watch = {
      ledger: this.#ledger,
      line: options.onLine,
      started: moved,
      ended: (process, how) => {
        options.onEnd?.(process, how);
        moved();
      },
    };
  }

  async start() {
    const { databaseUrl, natsUrl, isDurable, isKept, keysFile, signal } = this.#options;
    const step = this.#step;
    const proceed = () => signal?.throwIfAborted();

    await step(databaseUrl ? 'Postgres of DATABASE_URL answers' : 'Postgres started', async () => {
      if (databaseUrl) await requirePostgres(databaseUrl);
      else this.#backing.postgres = await startPostgres({ isDurable, isKept, watch: this.#watch });
      this.databaseUrl = databaseUrl ?? this.#backing.postgres.url;
    });
    proceed();
    if (natsUrl) await step('NATS of NATS_URL answers', () => requireNats(natsUrl));
    else {
      await findNats({ signal }); // may install it, a step of its own
      await step('NATS started', async () => {
        this.#backing.nats = await startNats({ watch: this.#watch, logFile: this.#logFile('nats') });
      });
    }
    this.natsUrl = natsUrl ?? this.#backing.nats.url;
    proceed();
    await step('database migrated', async () => {
      const applied = await deploy(this.databaseUrl);
      return applied.length ? `database migrated (${applied.length} applied)` : 'database is up to date';
    });
    proceed();
    this.keys = await loadKeys(keysFile);
    this.port = this.#options.port || (await freePort());
    this.baseUrl = `http://127.0.0.1:${this.port}`;
    this.mcpUrl = `${this.baseUrl}/mcp`;
    this.#processes = this.#wanted().map(({ service, replica }) => new Supervised(this.#plan(service, replica), this.#watch));
    await step(`tenants and keys seeded, ${this.#processes.length} service processes started`, async () => {
      this.#seeding = seed(this.databaseUrl, this.keys, {
        stamp: keysFile && `${keysFile}.seeded`,
        workspaces: this.#isConformance ? ['conformance'] : [], // where a seam's neighbour works
      });
      const up = [this.#seeding, ...this.#processes.map((process) => process.start())];
      await Promise.race([Promise.all(up), interrupted(signal)]);
      await Promise.race([this.answers(), interrupted(signal)]);
    });
    proceed();
    if (this.#isConformance)
      await step('conformance fixtures seeded', async () => {
        const { primary, tenantB } = this.keys;
        await seedFixtures({ baseUrl: this.baseUrl, keys: [primary, tenantB], mcpServerUrl: this.#mcpServerUrl, signal });
        return `${fixturesFor({ mcpServerUrl: this.#mcpServerUrl }).length} conformance fixtures seeded`;
      });
    this.isUp = true;
  }

  get #isConformance() {
    return this.#options.mode === 'conformance';
  }

  /** The MCP server that a suite runs beside the host, if it said so. */
  get #mcpServerUrl() {
    return this.#options.env?.OPENWOP_MCP_FAKE_SERVER_URL ?? process.env.OPENWOP_MCP_FAKE_SERVER_URL;
  }

  /** Until the front door opens. */
  async answers(limit = 30_000) {
    for (const end = Date.now() + limit; ; await sleep(50)) {
      const response = await fetch(`${this.baseUrl}/.well-known/openwop`, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
      if (response?.ok) return;
      if (this.#isStopping) return;
      if (Date.now() > end) throw new Error(`${this.baseUrl}/.well-known/openwop does not answer (${response?.status ?? 'no connection'})`);
    }
  }

  /** Every process this host runs, as `.dev/stack.json` lists them: the service processes themselves, no wrappers. */
  get pids() {
    const pids = Object.fromEntries(SERVICES.map((service) => [service, []]));
    for (const process of this.#everything()) {
      pids[process.service] ??= [];
      if (process.pid !== undefined) pids[process.service].push(process.pid);
    }
    return pids;
  }

  /** What `.dev/stack.json` holds. */
  get description() {
    const { baseUrl, mcpUrl, natsUrl, databaseUrl, keys, pids } = this;
    return { baseUrl, mcpUrl, natsUrl, databaseUrl, keys, pids };
  }

  /** One process by name: `engine-1`, `postgres`, … */
  process(name) {
    const found = this.#everything().find((process) => process.name === name);
    if (!found)
      throw new Error(
        `no process ${name}: there are ${this.#everything()
          .map((process) => process.name)
          .join(', ')}`,
      );
    return found;
  }

  /** All processes of a service. */
  replicas(service) {
    return this.#everything().filter((process) => process.service === service);
  }

  /** Until every process is up again. */
  async ready() {
    await Promise.all(this.#everything().map((process) => process.ready()));
    await this.answers();
  }

  /** In order: the services drain, then what they stand on. */
  async stop() {
    this.#isStopping = true;
    const edge = this.#processes.filter((process) => process.service === 'gateway');
    await Promise.all(edge.map((process) => process.stop()));
    await Promise.all(this.#processes.map((process) => process.stop()));
    await this.#seeding?.catch(() => {}); // it may still be under way, and must not lose Postgres in the middle of it
    await this.#backing.nats?.stop();
    await this.#backing.postgres?.stop();
    if (!this.#options.ledger) this.#ledger.close();
  }

  /** @returns {Supervised[]} */
  #everything() {
    return [this.#backing.postgres?.process, this.#backing.nats?.process, ...this.#processes].filter(Boolean);
  }

  #wanted() {
    const { replicas = {}, services = SERVICES } = this.#options;
    return services.flatMap((service) => Array.from({ length: replicas[service] ?? 1 }, (_, index) => ({ service, replica: index + 1 })));
  }

  #logFile(name) {
    return this.#options.logDir && path.join(this.#options.logDir, `${name}.log`);
  }

  #plan(service, replica) {
    const name = `${service}-${replica}`;
    const main = path.join(root, 'apps', service, 'dist/main.js');
    const tracing = path.join(root, 'libs/chassis/dist/otel.js');
    let healthPort;
    return {
      name,
      service,
      logFile: this.#logFile(name),
      launch: async () => {
        healthPort = await freePort();
        return {
          command: process.execPath,
          args: [...(existsSync(tracing) ? ['--import', tracing] : []), main],
          cwd: root,
          env: this.#environment(service, name, healthPort),
        };
      },
      isReady: async () => (await fetch(`http://127.0.0.1:${healthPort}/ready`, { signal: AbortSignal.timeout(2_000) })).ok,
    };
  }

  #environment(service, name, healthPort) {
    const { mode = 'plain', env = {}, serviceEnv = {} } = this.#options;
    const passedOn = Object.fromEntries(Object.entries(process.env).filter(([key]) => PASSED_ON.test(key)));
    const database = serviceUrl(this.databaseUrl, service);
    return {
      NODE_ENV: 'production',
      NODE_COMPILE_CACHE: inDev('compile-cache'), // halves the start of a process; from Node 22 on
      ...(service === 'mcp-client' && mode !== 'plain' && { EGRESS_ALLOW: LOOPBACK }),
      ...(mode === 'conformance' && { OTEL_METRIC_EXPORT_INTERVAL: '2000' }),
      ...passedOn,
      SERVICE_NAME: service,
      INSTANCE_ID: `${name}-${randomBytes(4).toString('hex')}`, // a restarted process is somebody else
      NATS_URL: this.natsUrl,
      HEALTH_PORT: String(healthPort),
      ...(database && { DATABASE_URL: database }),
      ...(service === 'gateway' && { HOST: '127.0.0.1', PORT: String(this.port), PUBLIC_URL: this.baseUrl }),
      ...(mode === 'conformance' && { CONFORMANCE: 'true', OPENWOP_TEST_SEAM_ENABLED: 'true' }),
      ...(mode === 'conformance' &&
        service === 'gateway' && {
          FIXTURES: fixturesFor({ mcpServerUrl: this.#mcpServerUrl })
            .map(({ id }) => id)
            .join(','),
        }),
      ...env,
      ...serviceEnv[service],
    };
  }
}

/** Never resolves; rejects when the signal fires. */
const interrupted = (signal) =>
  new Promise((_resolve, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
