import { type DynamicModule, Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { ChassisModule } from '@isthmus/chassis';
import { MessagingModule } from '@isthmus/messaging';
import { Credentials } from './auth/credentials.js';
import { ServicePassports } from './auth/service-passports.js';
import type { Config } from './config.js';
import { DiscoveryController } from './discovery/discovery.controller.js';
import { Discovery } from './discovery/discovery.js';
import { MountsController } from './host/mounts.controller.js';
import { WorkflowsController } from './host/workflows.controller.js';
import { Door } from './http/door.js';
import { EnvelopeFilter } from './http/envelope.filter.js';
import { McpController } from './mcp/mcp.controller.js';
import { EventsController } from './runs/events.controller.js';
import { RunWatch } from './runs/run-watch.js';
import { RunsController } from './runs/runs.controller.js';

@Module({})
export class AppModule {
  static forRoot(config: Config): DynamicModule {
    return {
      module: AppModule,
      imports: [ChassisModule.forRoot(config), MessagingModule.forRoot({ service: 'gateway', natsUrl: config.NATS_URL, passports: true })],
      controllers: [DiscoveryController, RunsController, EventsController, WorkflowsController, MountsController, McpController],
      providers: [Door, Credentials, ServicePassports, RunWatch, Discovery, { provide: APP_FILTER, useClass: EnvelopeFilter }],
    };
  }
}
