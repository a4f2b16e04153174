import { maskCredentials } from '@isthmus/protocol';
import { context, trace } from '@opentelemetry/api';
import { type DestinationStream, pino } from 'pino';
import { redact } from './redact.js';

export type Facts = Readonly<Record<string, unknown>>;

/** Says what happens, one JSON line each. Messages are constant text; what varies is a fact. */
export abstract class Logger {
  abstract trace(message: string, facts?: Facts): void;
  abstract debug(message: string, facts?: Facts): void;
  abstract info(message: string, facts?: Facts): void;
  abstract warn(message: string, facts?: Facts): void;
  abstract error(message: string, facts?: Facts): void;
  /** The same logger, with `facts` in every line. */
  abstract child(facts: Facts): Logger;
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** `stdout` unless told otherwise; written at once, so that the last words of a dying process are not lost. */
export function createLogger(
  { service, instance, level }: { service: string; instance: string; level: LogLevel },
  destination: DestinationStream = pino.destination({ fd: 1, sync: true }),
): Logger {
  const sink = pino(
    {
      level,
      base: { service, instance },
      messageKey: 'message',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
  return new PinoLogger(sink, {});
}

class PinoLogger extends Logger {
  constructor(
    private readonly sink: pino.Logger,
    private readonly facts: Facts,
  ) {
    super();
  }

  override trace(message: string, facts?: Facts): void {
    this.#write('trace', message, facts);
  }
  override debug(message: string, facts?: Facts): void {
    this.#write('debug', message, facts);
  }
  override info(message: string, facts?: Facts): void {
    this.#write('info', message, facts);
  }
  override warn(message: string, facts?: Facts): void {
    this.#write('warn', message, facts);
  }
  override error(message: string, facts?: Facts): void {
    this.#write('error', message, facts);
  }
  override child(facts: Facts): Logger {
    return new PinoLogger(this.sink, { ...this.facts, ...facts });
  }

  #write(level: 'trace' | 'debug' | 'info' | 'warn' | 'error', message: string, facts?: Facts): void {
    if (!this.sink.isLevelEnabled(level)) return;
    const traceId = trace.getSpanContext(context.active())?.traceId;
    this.sink[level]({ ...(traceId && { traceId }), ...(redact({ ...this.facts, ...facts }) as object) }, maskCredentials(message));
  }
}
