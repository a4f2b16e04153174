import type { LoggerService } from '@nestjs/common';
import type { Facts, Logger } from './logger.js';

/** Lets Nest speak through our logger. What it tells of its own start (modules, routes) is of interest only when debugging. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, ...rest: unknown[]): void {
    this.logger.debug(...line(message, rest));
  }
  debug(message: unknown, ...rest: unknown[]): void {
    this.logger.debug(...line(message, rest));
  }
  verbose(message: unknown, ...rest: unknown[]): void {
    this.logger.trace(...line(message, rest));
  }
  warn(message: unknown, ...rest: unknown[]): void {
    this.logger.warn(...line(message, rest));
  }
  error(message: unknown, ...rest: unknown[]): void {
    this.logger.error(...line(message, rest));
  }
  fatal(message: unknown, ...rest: unknown[]): void {
    this.logger.error(...line(message, rest));
  }
}

/** Nest passes an optional stack and, last, the name of the class that speaks. */
function line(message: unknown, rest: readonly unknown[]): [string, Facts] {
  const from = typeof rest.at(-1) === 'string' ? { from: rest.at(-1) } : {};
  const stack = rest.length > 1 && typeof rest[0] === 'string' ? { stack: rest[0] } : {};
  if (message instanceof Error) return [message.message, { ...from, error: message }];
  return typeof message === 'string' ? [message, { ...from, ...stack }] : ['Nest reports', { ...from, ...stack, report: message }];
}
