import { type DynamicModule, Global, Module } from '@nestjs/common';
import { Clock, SystemClock } from './clock.js';
import { ClockKeeper } from './clock-keeper.js';
import type { BaseConfig } from './config.js';
import { Health } from './health.js';
import { Ids, RandomIds } from './ids.js';
import { createLogger, Logger } from './logger.js';
import { installPropagation } from './tracing.js';

/** Token of the service's parsed configuration. */
export const CONFIG = 'CONFIG';

/** Time, ids, logs, health and configuration, for every class of a service. */
@Global()
@Module({})
export class ChassisModule {
  static forRoot(config: BaseConfig): DynamicModule {
    installPropagation();
    return {
      module: ChassisModule,
      providers: [
        { provide: CONFIG, useValue: config },
        { provide: Clock, useClass: SystemClock },
        { provide: Ids, useClass: RandomIds },
        { provide: Logger, useFactory: () => loggerOf(config) },
        Health,
        ClockKeeper,
      ],
      exports: [CONFIG, Clock, Ids, Logger, Health, ClockKeeper],
    };
  }
}

export const loggerOf = (config: BaseConfig): Logger =>
  createLogger({ service: config.SERVICE_NAME, instance: config.INSTANCE_ID, level: config.LOG_LEVEL });
