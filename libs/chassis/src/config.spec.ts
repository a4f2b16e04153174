import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { BaseConfig, ConfigError, readConfig, readTelemetry } from './config.js';

const least = { SERVICE_NAME: 'engine', NATS_URL: 'nats://127.0.0.1:4222' };
const problems = (schema: z.ZodObject, environment: Record<string, string>): readonly string[] => {
  try {
    readConfig(schema, environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
  }
  return [];
};

describe('the configuration', () => {
  it('fills in what may be left out', () => {
    expect(readConfig(BaseConfig, least)).toEqual({
      ...least,
      INSTANCE_ID: expect.stringMatching(/^[0-9a-f]{12}$/),
      HEALTH_PORT: 0,
      HEALTH_HOST: '127.0.0.1',
      LOG_LEVEL: 'info',
      DRAIN_MS: 5_000,
    });
  });

  it('counts a variable that is set to nothing as absent', () => {
    expect(readConfig(BaseConfig, { ...least, HEALTH_PORT: '', LOG_LEVEL: '' })).toMatchObject({ HEALTH_PORT: 0, LOG_LEVEL: 'info' });
  });

  it('says one sentence per problem and repeats no value', () => {
    expect(problems(BaseConfig, { SERVICE_NAME: 'hunter2', HEALTH_PORT: 'hunter2' })).toEqual([
      expect.stringMatching(/^SERVICE_NAME is not valid: .+\.$/),
      'NATS_URL is not set.',
      expect.stringMatching(/^HEALTH_PORT is not valid: .+\.$/),
    ]);
    expect(problems(BaseConfig, { SERVICE_NAME: 'hunter2', HEALTH_PORT: 'hunter2' }).join()).not.toContain('hunter2');
  });

  it('lets a service demand what the base only permits', () => {
    expect(problems(BaseConfig.extend({ DATABASE_URL: z.string() }), least)).toEqual(['DATABASE_URL is not set.']);
  });
});

describe('the telemetry variables', () => {
  it('export nothing unless an endpoint is named', () => {
    expect(readTelemetry({ SERVICE_NAME: 'engine' })).toMatchObject({ service: 'engine', traces: undefined, metrics: undefined });
  });

  it('export spans within half a second once it is', () => {
    expect(readTelemetry({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }).traces).toEqual({
      protocol: 'http/protobuf',
      delayMs: 500,
    });
  });

  it('may name an endpoint and a protocol for spans alone', () => {
    const telemetry = readTelemetry({
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4318/v1/traces',
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
    });
    expect(telemetry).toMatchObject({ traces: { protocol: 'http/json' }, metrics: undefined });
  });

  it.each(['true', 'TRUE'])('export nothing when OTEL_SDK_DISABLED is %s', (disabled) => {
    expect(readTelemetry({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', OTEL_SDK_DISABLED: disabled })).toMatchObject({
      traces: undefined,
      metrics: undefined,
    });
  });
});
