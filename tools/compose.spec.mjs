import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { packageFolders } from './build.mjs';
import { root } from './paths.mjs';
import { roleOf } from './roles.mjs';
import { SERVICES } from './stack/host.mjs';

const read = (file) => readFileSync(path.join(root, file), 'utf8');

/** As compose reads it: merge keys resolved, ${NAME:-default} replaced by the default. */
const compose = parse(
  read('docker-compose.yml').replace(/\$\{\w+(?::-([^}]*))?\}/g, (_, fallback) => fallback ?? ''),
  { merge: true },
);
const dockerfile = read('Dockerfile');

describe('docker-compose.yml', () => {
  it('has the five services, Postgres 18, NATS 2.12, the preparation and a collector behind a profile', () => {
    expect(Object.keys(compose.services).sort()).toEqual([...SERVICES, 'nats', 'otel', 'postgres', 'prepare'].sort());
    expect(compose.services.postgres.image).toMatch(/^postgres:18/);
    expect(compose.services.nats.image).toMatch(/^nats:2\.12/);
    expect(compose.services.otel.profiles).toEqual(['otel']);
  });

  describe.each(SERVICES)('%s', (service) => {
    const { environment, command, healthcheck, depends_on: after } = compose.services[service];

    it('is configured as its schema wants it, and says nothing the schema does not know', async () => {
      const { Config } = await import(`../apps/${service}/src/config.ts`);
      const { readConfig } = await import('../libs/chassis/src/config.ts');
      const own = Object.keys(environment).filter((name) => !name.startsWith('OTEL_'));
      expect(own.filter((name) => !Object.hasOwn(Config.shape, name))).toEqual([]);
      expect(readConfig(Config, environment)).toMatchObject({ SERVICE_NAME: service, NATS_URL: 'nats://nats:4222', HEALTH_PORT: 9090 });
    });

    it('logs in to the database as its own role, or not at all', () => {
      const user = environment.DATABASE_URL && new URL(environment.DATABASE_URL).username;
      expect(user).toBe(roleOf(service));
    });

    it('runs its own program, is asked for its health and waits for the preparation', () => {
      expect(command).toEqual([`apps/${service}/dist/main.js`]);
      expect(existsSync(path.join(root, 'apps', service, 'src/main.ts'))).toBe(true);
      expect(healthcheck.test.join(' ')).toContain(`127.0.0.1:${environment.HEALTH_PORT}/ready`);
      expect(after.prepare.condition).toBe('service_completed_successfully');
    });
  });

  it('publishes ports on this machine only', () => {
    const published = Object.values(compose.services).flatMap(({ ports = [] }) => ports);
    expect(published).toEqual(expect.arrayContaining(['127.0.0.1:8080:8080']));
    expect(published.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
  });

  it('gives the preparation the passwords the services log in with', () => {
    const { environment } = compose.services.prepare;
    for (const service of SERVICES.filter(roleOf)) {
      const url = new URL(compose.services[service].environment.DATABASE_URL);
      expect(environment[`${url.username.toUpperCase()}_PASSWORD`]).toBe(url.password);
    }
  });

  it('mounts files that exist', () => {
    const files = compose.services.otel.volumes.map((volume) => volume.split(':')[0]);
    expect(files.filter((file) => !existsSync(path.join(root, file)))).toEqual([]);
    expect(parse(read('docker/otel-collector.yaml')).service.pipelines).toHaveProperty('traces');
  });
});

describe('Dockerfile', () => {
  it('knows every workspace package before it installs', () => {
    const [manifests] = dockerfile.split('RUN npm ci');
    const wanted = [...packageFolders().map((folder) => path.relative(root, folder)), 'e2e'];
    expect(wanted.filter((folder) => !manifests.includes(`COPY ${folder}/package.json ${folder}/`))).toEqual([]);
  });

  it('ends in Node 24 without root', () => {
    const [, last] = dockerfile.split(/^FROM .* AS build$/m);
    expect(last).toMatch(/^FROM node:24/m);
    expect(last).toMatch(/^USER node$/m);
  });
});
