import { type DynamicModule, type NestApplicationOptions, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Config } from './config.js';
import { EdgeAdapter } from './http/edge.adapter.js';
import { MCP_PATH } from './http/known-paths.js';
import { MCP_ALIAS } from './seams/seams.js';

/** The HTTP side of the gateway, ready to listen. */
export const edge =
  (config: Pick<Config, 'PORT' | 'HOST' | 'OPENWOP_TEST_SEAM_ENABLED'>) =>
  async (
    module: Type | DynamicModule,
    options: NestApplicationOptions,
  ): Promise<{ app: NestFastifyApplication; listen: () => Promise<unknown> }> => {
    const app = await NestFactory.create<NestFastifyApplication>(
      module,
      new EdgeAdapter(config.OPENWOP_TEST_SEAM_ENABLED ? { [MCP_ALIAS]: MCP_PATH } : {}),
      options,
    );
    return { app, listen: () => app.listen(config.PORT, config.HOST) };
  };
