// Where a Docker engine answers, the tests' Postgres and NATS are the versions that docker-compose.yml names, in containers.
// Everywhere else (and with ISTHMUS_TEST_BACKEND=process) they are local processes.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { root } from '../paths.mjs';

const execute = promisify(execFile);
const PASSWORD = 'test';

/** `docker` or `process`. Asks the engine itself: a client without one is common, and testcontainers would find out late. */
export async function chooseBackend(environment = process.env, ask = engineAnswers) {
  const asked = environment.ISTHMUS_TEST_BACKEND;
  if (asked === 'docker' || asked === 'process') return asked;
  return (await ask()) ? 'docker' : 'process';
}

async function engineAnswers() {
  try {
    const { stdout } = await execute('docker', ['version', '--format', '{{.Server.Version}}'], { timeout: 3_000 });
    return stdout.trim().length > 0;
  } catch {
    return false;
  }
}

/** The image that compose runs for a service. */
export async function imageOf(service) {
  const { parse } = await import('yaml');
  const { services } = parse(readFileSync(path.join(root, 'docker-compose.yml'), 'utf8'));
  return services[service].image;
}

/** Both servers; resolves when they answer. `natsConfig` is the text of a configuration file. */
export async function startContainers({ natsConfig }) {
  const { GenericContainer, Wait } = await import('testcontainers');
  const [postgres, nats] = await Promise.all([
    new GenericContainer(await imageOf('postgres'))
      .withEnvironment({ POSTGRES_PASSWORD: PASSWORD })
      .withCommand([
        'postgres',
        '-c',
        'fsync=off',
        '-c',
        'synchronous_commit=off',
        '-c',
        'full_page_writes=off',
        '-c',
        'max_connections=200',
      ])
      .withExposedPorts(5432)
      .withWaitStrategy(Wait.forLogMessage(/ready to accept connections/, 2))
      .start(),
    new GenericContainer(await imageOf('nats'))
      .withCopyContentToContainer([{ content: natsConfig, target: '/etc/isthmus-nats.conf' }])
      .withCommand(['-c', '/etc/isthmus-nats.conf', '-m', '8222'])
      .withExposedPorts(4222, 8222)
      .withWaitStrategy(Wait.forHttp('/healthz', 8222))
      .start(),
  ]);
  return {
    databaseUrl: `postgresql://postgres:${PASSWORD}@${postgres.getHost()}:${postgres.getMappedPort(5432)}/postgres`,
    natsUrl: `nats://${nats.getHost()}:${nats.getMappedPort(4222)}`,
    stop: async () => void (await Promise.all([postgres.stop(), nats.stop()])),
  };
}
