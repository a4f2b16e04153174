import { ChassisModule } from '@isthmus/chassis';
import { DbModule } from '@isthmus/db';
import { MessagingModule } from '@isthmus/messaging';
import { type DynamicModule, Module } from '@nestjs/common';
import type { Config } from './config.js';
import { DescribeHandler } from './describe.handler.js';
import { MountsHandler } from './mounts.handler.js';
import { Mounts } from './mounts.js';
import { RemoteModule } from './remote.module.js';
import { SeamRemote } from './seam-remote.js';
import { SeamHandler } from './seam.handler.js';
import { ToolsHandler } from './tools.handler.js';

/** Remote MCP servers, mounted per tenant. */
@Module({})
export class AppModule {
  static forRoot(config: Config): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ChassisModule.forRoot(config),
        MessagingModule.forRoot({ service: 'mcp-client', natsUrl: config.NATS_URL, passports: true }),
        DbModule.forRoot(config.DATABASE_URL),
        RemoteModule,
      ],
      controllers: [MountsHandler, ToolsHandler, SeamHandler, DescribeHandler],
      providers: [Mounts, SeamRemote],
    };
  }
}
