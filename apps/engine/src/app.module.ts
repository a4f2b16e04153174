import { type DynamicModule, Inject, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { ChassisModule, ClockKeeper, Health, Logger } from '@isthmus/chassis';
import { pgPool } from '@isthmus/db';
import { Egress } from '@isthmus/egress';
import { MessagingModule } from '@isthmus/messaging';
import { LIMITS } from '@isthmus/protocol';
import type pg from 'pg';
import type { Config } from './config.js';
import { Commands } from './driver/commands.js';
import { Delegation } from './driver/delegation.js';
import { Runs } from './driver/runs.js';
import { DRIVER_SETTINGS, type DriverSettings } from './driver/settings.js';
import { ToolCalls } from './driver/tool-calls.js';
import { ChildRuns } from './driver/child-runs.js';
import { LifecycleHandler } from './handlers/lifecycle.handler.js';
import { TokensHandler } from './handlers/tokens.handler.js';
import { DescribeHandler } from './handlers/describe.handler.js';
import { RunsHandler } from './handlers/runs.handler.js';
import { SeamHandler } from './handlers/seam.handler.js';
import { WorkflowsHandler } from './handlers/workflows.handler.js';
import { IdempotencyKeys } from './store/idempotency-keys.js';
import { Invocations } from './store/invocations.js';
import { RunLog } from './store/run-log.js';
import { TokenKeys } from './store/token-keys.js';
import { Tokens } from './tokens.js';
import { Workflows } from './store/workflows.js';
import { Deliverer } from './webhooks/deliverer.js';
import { Deliveries } from './webhooks/deliveries.js';
import { WEBHOOK_SETTINGS, type WebhookSettings, webhookSettings } from './webhooks/settings.js';
import { Subscriptions } from './webhooks/subscriptions.js';
import { WebhooksHandler } from './webhooks/webhooks.handler.js';

const POOL = Symbol('pg pool');
const onPool = <T>(Store: new (pool: pg.Pool) => T) => ({ provide: Store, useFactory: (pool: pg.Pool) => new Store(pool), inject: [POOL] });

@Module({})
export class EngineModule implements OnModuleInit, OnApplicationShutdown {
  constructor(
    @Inject(POOL) private readonly pool: pg.Pool,
    private readonly log: RunLog,
    private readonly clocks: ClockKeeper,
    private readonly health: Health,
  ) {}

  static forRoot(config: Config): DynamicModule {
    const settings: DriverSettings = {
      instance: `${config.SERVICE_NAME}-${config.INSTANCE_ID}`,
      leaseMs: config.LEASE_MS,
      sweepMs: config.SWEEP_MS,
      maxNodeExecutions: config.MAX_NODE_EXECUTIONS,
      maxRunDurationMs: LIMITS.maxRunDurationMs,
    };
    return {
      module: EngineModule,
      imports: [ChassisModule.forRoot(config), MessagingModule.forRoot({ service: 'engine', natsUrl: config.NATS_URL, passports: true })],
      controllers: [RunsHandler, LifecycleHandler, TokensHandler, WorkflowsHandler, WebhooksHandler, SeamHandler, DescribeHandler],
      providers: [
        {
          provide: POOL,
          useFactory: (logger: Logger) =>
            pgPool(config.DATABASE_URL, {
              max: config.DATABASE_POOL,
              onError: (error) => logger.warn('a connection to Postgres broke', { error }),
            }),
          inject: [Logger],
        },
        { provide: DRIVER_SETTINGS, useValue: settings },
        onPool(RunLog),
        onPool(Workflows),
        onPool(Invocations),
        onPool(IdempotencyKeys),
        onPool(TokenKeys),
        { provide: WEBHOOK_SETTINGS, useValue: webhookSettings(config) },
        {
          provide: Egress,
          useFactory: ({ allow }: WebhookSettings, logger: Logger) => new Egress(allow, logger),
          inject: [WEBHOOK_SETTINGS, Logger],
        },
        onPool(Subscriptions),
        onPool(Deliveries),
        Deliverer,
        Tokens,
        ChildRuns,
        Delegation,
        ToolCalls,
        Runs,
        Commands,
      ],
    };
  }

  async onModuleInit(): Promise<void> {
    this.health.add('postgres', async () => {
      await this.pool.query('select 1');
    });
    await this.clocks.follow(() => this.log.now());
  }

  async onApplicationShutdown(): Promise<void> {
    await this.pool.end();
  }
}
