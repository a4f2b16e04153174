export { natsTransport, type Service, startService } from './bootstrap.js';
export { Clock, SystemClock } from './clock.js';
export { ClockKeeper } from './clock-keeper.js';
export { BaseConfig, ConfigError, loadConfig, readConfig, SeamSwitch } from './config.js';
export { Health, type Readiness } from './health.js';
export { traceRequests } from './http-tracing.js';
export { Ids, RandomIds } from './ids.js';
export { createLogger, type Facts, Logger } from './logger.js';
export { ChassisModule, CONFIG } from './module.js';
export { natsAddress } from './nats-address.js';
export { NestLogger } from './nest-logger.js';
export { redact } from './redact.js';
export {
  type Carrier,
  currentCarrier,
  currentCarrier as currentTraceparent,
  installPropagation,
  runInContext,
  type SpanOptions,
  withSpan,
} from './tracing.js';
