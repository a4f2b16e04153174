import { createLogger, Health, installPropagation, Logger, NestLogger, natsTransport } from '@isthmus/chassis';
import type { DynamicModule, INestMicroservice, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { testNats } from './nats.js';

type Token = Parameters<ReturnType<typeof Test.createTestingModule>['overrideProvider']>[0];

export type BootOptions = {
  /** Queue group; the service's name. */
  readonly service: string;
  /** Replaces providers, most often `[Clock, new FakeClock()]`. */
  readonly overrides?: readonly (readonly [Token, unknown])[];
  readonly natsUrl?: string;
};

export type BootedService = { readonly app: INestMicroservice; stop(): Promise<void> };

/** Starts one service inside of the test, listening on the test's NATS exactly as `startService` would. Only errors are logged. */
export async function bootService(
  module: Type | DynamicModule,
  { service, overrides = [], natsUrl = testNats() }: BootOptions,
): Promise<BootedService> {
  installPropagation();
  const logger = createLogger({ service, instance: 'test', level: 'error' });
  const builder = Test.createTestingModule({ imports: [module] });
  for (const [token, value] of [[Logger, logger] as const, ...overrides]) builder.overrideProvider(token).useValue(value);
  const testing = await builder.setLogger(new NestLogger(logger)).compile();
  const strategy = natsTransport({ NATS_URL: natsUrl, SERVICE_NAME: service, INSTANCE_ID: 'test' });
  const app = testing.createNestMicroservice({ strategy });
  try {
    await app.listen();
  } catch (error) {
    await app.close();
    throw error;
  }
  return {
    app,
    async stop() {
      await strategy.drain();
      await app.get(Health, { strict: false }).drain();
      await app.close();
    },
  };
}
