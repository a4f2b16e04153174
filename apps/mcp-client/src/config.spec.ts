import { describe, expect, it } from '@jest/globals';
import { ConfigError, readConfig } from '@isthmus/chassis';
import { Config, repeatUnknownOf } from './config.js';

const REQUIRED = { SERVICE_NAME: 'mcp-client', NATS_URL: 'nats://127.0.0.1', DATABASE_URL: 'postgresql://x' };
const read = (environment: Record<string, string> = {}) => readConfig(Config, { ...REQUIRED, ...environment });

describe('the configuration', () => {
  it('calls nothing that is not public, and repeats nothing, unless it is told to', () => {
    const config = read();
    expect(config).toMatchObject({ EGRESS_ALLOW: [], MAX_RESULT_BYTES: 409_600 });
    expect(repeatUnknownOf(config)).toBe('never');
    expect(read({ EGRESS_ALLOW: '127.0.0.0/8,::1/128' }).EGRESS_ALLOW).toHaveLength(2);
  });

  it('believes a server that it may be called twice in a conformance run', () => {
    expect(repeatUnknownOf(read({ CONFORMANCE: 'true' }))).toBe('hinted');
    expect(repeatUnknownOf(read({ CONFORMANCE: 'true', REPEAT_UNKNOWN: 'never' }))).toBe('never');
  });

  it('is refused when it makes no sense', () => {
    const wrong = [
      ['EGRESS_ALLOW', 'everything'],
      ['MAX_RESULT_BYTES', '10000000'],
      ['REPEAT_UNKNOWN', 'yes'],
    ] as const;
    for (const [name, value] of wrong) expect(() => read({ [name]: value })).toThrow(ConfigError);
  });
});
