import { type DynamicModule, type NestApplicationOptions, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Config } from './config.js';
import { EdgeAdapter } from './http/edge.adapter.js';

/** The HTTP side of the gateway, ready to listen. */
export const edge =
  (config: Pick<Config, 'PORT' | 'HOST'>) =>
  async (
    module: Type | DynamicModule,
    options: NestApplicationOptions,
  ): Promise<{ app: NestFastifyApplication; listen: () => Promise<unknown> }> => {
    const app = await NestFactory.create<NestFastifyApplication>(module, new EdgeAdapter(), options);
    return { app, listen: () => app.listen(config.PORT, config.HOST) };
  };
