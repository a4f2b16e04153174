import { type DynamicModule, Module, type OnModuleInit } from '@nestjs/common';
import { ChassisModule, ClockKeeper, Health } from '@isthmus/chassis';
import { Postgres, PostgresModule } from '@isthmus/db';
import { MessagingModule } from '@isthmus/messaging';
import type { Method } from './call.js';
import type { Config } from './config.js';
import { DescribeController } from './describe.controller.js';
import { ExchangeServer } from './exchange-server.js';
import { ExposedTools } from './exposed-tools.js';
import { McpEndpoint, METHOD_TABLE } from './mcp-endpoint.js';
import { METHODS } from './methods/index.js';
import { RequestStates } from './request-states.js';
import { Runs } from './runs.js';
import { StateKeys } from './state-keys.js';

/** Connections to Postgres: only the keys of `requestState` are read there. */
const CONNECTIONS = 2;

@Module({})
export class AppModule implements OnModuleInit {
  constructor(
    private readonly db: Postgres,
    private readonly clock: ClockKeeper,
    private readonly health: Health,
  ) {}

  static forRoot(config: Config): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ChassisModule.forRoot(config),
        MessagingModule.forRoot({ service: 'mcp-server', natsUrl: config.NATS_URL, passports: true }),
        PostgresModule.forRoot(config.DATABASE_URL, CONNECTIONS),
      ],
      controllers: [DescribeController],
      providers: [
        ExchangeServer,
        ExposedTools,
        McpEndpoint,
        RequestStates,
        Runs,
        StateKeys,
        ...METHODS,
        {
          provide: METHOD_TABLE,
          inject: METHODS,
          useFactory: (...methods: Method[]) => new Map(methods.map((method) => [method.name, method])),
        },
      ],
    };
  }

  async onModuleInit(): Promise<void> {
    this.health.add('postgres', async () => void (await this.db.rows`select 1`));
    await this.clock.follow(() => this.#databaseTime());
  }

  async #databaseTime(): Promise<number> {
    const [row] = await this.db.rows<{ ms: number }>`select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`;
    return row?.ms ?? Number.NaN;
  }
}
