import type { DynamicModule, INestApplicationContext, NestApplicationOptions, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { CustomTransportStrategy } from '@nestjs/microservices';
import type { BaseConfig } from './config.js';
import { Ending } from './drain.js';
import { Health, type Readiness } from './health.js';
import { serveHealth } from './health-server.js';
import type { Logger } from './logger.js';
import { loggerOf } from './module.js';
import { natsAddress } from './nats-address.js';
import { DrainingNats } from './nats-server.js';
import { NestLogger } from './nest-logger.js';
import { placesOf, untilReachable } from './reachable.js';
import { stopTelemetry } from './telemetry.js';
import { installPropagation } from './tracing.js';

type App = INestApplicationContext;
type Root = Type | DynamicModule;

export type Service = {
  readonly config: BaseConfig;
  /** The service's module; it imports `ChassisModule.forRoot(config)`. */
  readonly module: Root;
  /** The gateway's edge: makes the HTTP application with these options and says how it starts to listen. Without it, a microservice on NATS. */
  readonly http?: (module: Root, options: NestApplicationOptions) => Promise<{ readonly app: App; listen(): Promise<unknown> }>;
  /** Instead of Nest's NATS transport. */
  readonly strategy?: CustomTransportStrategy;
};

/**
 * Starts a service and sees to its end. It waits for NATS and Postgres instead of dying without them, answers `/live` from the
 * first moment and `/ready` once it has begun to listen; a signal makes it not ready, lets it finish, and exits with 0.
 */
export async function startService(service: Service): Promise<void> {
  const { config } = service;
  installPropagation();
  const logger = loggerOf(config);
  const ending = new Ending(logger, config.DRAIN_MS);
  ending.install();
  try {
    await start(service, logger, ending);
  } catch (error) {
    if (ending.signal.aborted) return;
    logger.error('the service could not start', { error });
    await stopTelemetry();
    process.exit(1);
  }
}

async function start(service: Service, logger: Logger, ending: Ending): Promise<void> {
  const { config } = service;
  let ready = async (): Promise<Readiness> => ({ ready: false, checks: { started: false } });
  const health = await serveHealth(config.HEALTH_HOST, config.HEALTH_PORT, () => ready());
  logger.info('health answers', { port: health.port });

  await waitFor('nats', placesOf('nats', config.NATS_URL, 4222), logger, ending);
  if (config.DATABASE_URL) await waitFor('postgres', placesOf('postgresql', config.DATABASE_URL, 5432), logger, ending);
  if (ending.signal.aborted) return;

  const options: NestApplicationOptions = { logger: new NestLogger(logger), abortOnError: false };
  const { app, listen } = await (service.http ? service.http(service.module, options) : microservice(service, options));
  const checks = app.get(Health, { strict: false });
  ending.add(() => checks.drain());
  ending.add(() => app.close());
  ending.add(stopTelemetry);
  ending.add(() => health.close());
  await listen();
  ready = () => checks.ready();
  logger.info('listening');
}

async function waitFor(name: string, places: ReturnType<typeof placesOf>, logger: Logger, { signal }: Ending): Promise<void> {
  let hadToWait = false;
  await untilReachable(places, {
    signal,
    onWait: (problem) => {
      hadToWait = true;
      logger.warn(`waiting for ${name}`, { at: problem });
    },
  });
  if (hadToWait && !signal.aborted) logger.info(`${name} answers`);
}

async function microservice({ config, module, strategy }: Service, options: NestApplicationOptions) {
  const transport = strategy ?? natsTransport(config);
  const app = await NestFactory.createMicroservice(module, { ...options, strategy: transport });
  let isConnected = true;
  app.status?.subscribe((status: string) => (isConnected = status === 'connected'));
  const health = app.get(Health, { strict: false });
  health.add('transport', () => {
    if (!isConnected) throw new Error('not connected');
  });
  if (transport instanceof DrainingNats) health.onDrain(() => transport.drain());
  return { app, listen: () => app.listen() };
}

/** Queue group = service: each message goes to one replica. */
export const natsTransport = (config: { NATS_URL: string; SERVICE_NAME: string; INSTANCE_ID: string }): DrainingNats =>
  new DrainingNats({
    ...natsAddress(config.NATS_URL),
    queue: config.SERVICE_NAME,
    name: `${config.SERVICE_NAME}/${config.INSTANCE_ID}`,
  });
