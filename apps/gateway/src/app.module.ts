import { type DynamicModule, Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { ChassisModule } from '@isthmus/chassis';
import { MessagingModule } from '@isthmus/messaging';
import { Credentials } from './auth/credentials.js';
import { ServicePassports } from './auth/service-passports.js';
import type { Config } from './config.js';
import { DiscoveryController } from './discovery/discovery.controller.js';
import { Discovery } from './discovery/discovery.js';
import { AuditController } from './host/audit.controller.js';
import { MountsController } from './host/mounts.controller.js';
import { WebhooksController } from './host/webhooks.controller.js';
import { WorkflowsController } from './host/workflows.controller.js';
import { Door } from './http/door.js';
import { EnvelopeFilter } from './http/envelope.filter.js';
import { Inflight } from './http/inflight.js';
import { McpController } from './mcp/mcp.controller.js';
import { EventsController } from './runs/events.controller.js';
import { InterruptsController } from './runs/interrupts.controller.js';
import { LifecycleController } from './runs/lifecycle.controller.js';
import { ReportsController } from './runs/reports.controller.js';
import { RunWatch } from './runs/run-watch.js';
import { RunsController } from './runs/runs.controller.js';
import { SEAM_CONTROLLERS, SEAM_PROVIDERS } from './seams/index.js';

@Module({})
export class AppModule {
  static forRoot(config: Config): DynamicModule {
    return {
      module: AppModule,
      imports: [ChassisModule.forRoot(config), MessagingModule.forRoot({ service: 'gateway', natsUrl: config.NATS_URL, passports: true })],
      controllers: [
        DiscoveryController,
        RunsController,
        LifecycleController,
        InterruptsController,
        EventsController,
        ReportsController,
        WorkflowsController,
        WebhooksController,
        MountsController,
        AuditController,
        McpController,
        ...(config.OPENWOP_TEST_SEAM_ENABLED ? SEAM_CONTROLLERS : []),
      ],
      providers: [
        Door,
        Inflight,
        Credentials,
        ServicePassports,
        RunWatch,
        Discovery,
        { provide: APP_FILTER, useClass: EnvelopeFilter },
        ...(config.OPENWOP_TEST_SEAM_ENABLED ? SEAM_PROVIDERS : []),
      ],
    };
  }
}
