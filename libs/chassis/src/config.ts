import { randomBytes } from 'node:crypto';
import { z } from 'zod';

const port = z.coerce.number().int().min(0).max(65_535);
const SERVICES = ['gateway', 'authz', 'engine', 'mcp-client', 'mcp-server'] as const;

/** What every service is told by its environment; a service extends it with what it alone needs. */
export const BaseConfig = z.object({
  SERVICE_NAME: z.enum(SERVICES),
  /** Tells replicas apart, in logs and in the ids of what only one of them holds. */
  INSTANCE_ID: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 _ -')
    .default(() => randomBytes(6).toString('hex')),
  /** One URL, or several of a cluster separated by commas. */
  NATS_URL: z.string().min(1),
  DATABASE_URL: z.string().min(1).optional(),
  /** 0: any free port; the log tells which. */
  HEALTH_PORT: port.default(0),
  /** Kubernetes asks from outside of the pod: there it is 0.0.0.0. */
  HEALTH_HOST: z.string().min(1).default('127.0.0.1'),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
  /** How long work in flight may take to end after a signal. */
  DRAIN_MS: z.coerce.number().int().min(0).max(600_000).default(5_000),
});
export type BaseConfig = z.infer<typeof BaseConfig>;

/** `OPENWOP_TEST_SEAM_ENABLED`: are test seams on? Anything but `true` is no. (spec/seams.md §1) */
export const SeamSwitch = z
  .string()
  .optional()
  .transform((text) => text === 'true');

type Environment = Readonly<Record<string, string | undefined>>;

/** Why a process cannot start: one sentence per variable, none repeats a value (it may be a password). */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}

/** A variable that is set to nothing counts as absent: compose files pass empty strings. */
export function readConfig<S extends z.ZodObject>(schema: S, environment: Environment = process.env): z.output<S> {
  const given = Object.fromEntries(Object.keys(schema.shape).map((name) => [name, environment[name] || undefined]));
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  throw new ConfigError(
    result.error.issues.map((issue) => {
      const name = issue.path.map(String).join('.');
      if (name && given[name] === undefined) return `${name} is not set.`;
      return `${name || 'The configuration'} is not valid: ${issue.message}.`;
    }),
  );
}

/** The configuration of this process, or its end: a service that is told nonsense says so and does not start. */
export function loadConfig<S extends z.ZodObject>(schema: S): z.output<S> {
  try {
    return readConfig(schema);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return process.exit(1);
  }
}

const TelemetryEnvironment = z.object({
  SERVICE_NAME: z.string().optional(),
  INSTANCE_ID: z.string().optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_SDK_DISABLED: z.string().optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.string().optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z.string().optional(),
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: z.string().optional(),
  OTEL_TRACES_EXPORTER: z.string().optional(),
  OTEL_METRICS_EXPORTER: z.string().optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: z.string().optional(),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: z.string().optional(),
  OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: z.string().optional(),
  OTEL_BSP_SCHEDULE_DELAY: z.coerce.number().int().min(0).default(500),
  OTEL_METRIC_EXPORT_INTERVAL: z.coerce.number().int().min(100).default(15_000),
});

export type Telemetry = {
  readonly service: string;
  readonly instance: string | undefined;
  readonly traces: { readonly protocol: string; readonly delayMs: number } | undefined;
  readonly metrics: { readonly protocol: string; readonly intervalMs: number } | undefined;
};

/** What OpenTelemetry's own variables ask for; the exporters read endpoint and headers themselves. */
export function readTelemetry(environment: Environment = process.env): Telemetry {
  const given = readConfig(TelemetryEnvironment, environment);
  const isOn = given.OTEL_SDK_DISABLED?.toLowerCase() !== 'true';
  const common = given.OTEL_EXPORTER_OTLP_PROTOCOL ?? 'http/protobuf';
  const hasTraces =
    isOn && given.OTEL_TRACES_EXPORTER !== 'none' && (given.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? given.OTEL_EXPORTER_OTLP_ENDPOINT);
  const hasMetrics =
    isOn && given.OTEL_METRICS_EXPORTER !== 'none' && (given.OTEL_EXPORTER_OTLP_METRICS_ENDPOINT ?? given.OTEL_EXPORTER_OTLP_ENDPOINT);
  return {
    service: given.OTEL_SERVICE_NAME ?? given.SERVICE_NAME ?? 'isthmus',
    instance: given.INSTANCE_ID,
    traces: hasTraces
      ? { protocol: given.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? common, delayMs: given.OTEL_BSP_SCHEDULE_DELAY }
      : undefined,
    metrics: hasMetrics
      ? { protocol: given.OTEL_EXPORTER_OTLP_METRICS_PROTOCOL ?? common, intervalMs: given.OTEL_METRIC_EXPORT_INTERVAL }
      : undefined,
  };
}
