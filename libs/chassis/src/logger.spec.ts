import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createLogger } from './logger.js';
import { NestLogger } from './nest-logger.js';
import { installPropagation, runInContext } from './tracing.js';

const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N';
const SECRETS = [
  'sk-live-abcdef123456',
  JWT,
  'AKIAIOSFODNN7EXAMPLE',
  'ghp_abcdefghijklmnopqrstuvwxyz0123456789',
  'gho_abcdefghijklmnopqrstuvwxyz0123456789',
  'github_pat_11ABCDEFG0abcdefghij_klmnop',
  'Bearer abc.def-ghi',
];

function recorded(level: 'trace' | 'info' = 'trace') {
  const lines: string[] = [];
  const logger = createLogger({ service: 'engine', instance: 'one', level }, { write: (line: string) => void lines.push(line) });
  return { logger, lines, last: () => JSON.parse(lines.at(-1) ?? '{}') as Record<string, unknown> };
}

describe('the log', () => {
  it('is one JSON line with service, instance, level, time, message and facts', () => {
    const { logger, last } = recorded();
    logger.child({ runId: 'r1' }).info('run taken over', { takeovers: 2 });
    expect(last()).toEqual({
      level: 'info',
      time: expect.any(String),
      service: 'engine',
      instance: 'one',
      message: 'run taken over',
      runId: 'r1',
      takeovers: 2,
    });
  });

  it('says nothing below its level', () => {
    const { logger, lines } = recorded('info');
    logger.debug('detail');
    expect(lines).toEqual([]);
  });

  it('names the trace it is part of', () => {
    installPropagation();
    const { logger, last } = recorded();
    runInContext({ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }, () => logger.info('here'));
    expect(last()['traceId']).toBe('0af7651916cd43dd8448eb211c80319c');
  });

  it.each(SECRETS)('masks %s in messages, values, names and errors', (secret) => {
    const { logger, lines } = recorded();
    const error = new Error(`refused ${secret}`, { cause: new Error(secret) });
    logger.error(`failed with ${secret}`, {
      error,
      deep: { list: [{ said: `x ${secret} y` }] },
      [secret]: 1,
      map: new Map([['k', secret]]),
    });
    expect(lines.join()).not.toContain(secret.replace('Bearer ', ''));
    expect(lines.join()).toContain('[redacted]');
  });

  it('masks members with the name of a secret at any depth, whatever they look like', () => {
    const { logger, last } = recorded();
    logger.info('call', {
      headers: { Authorization: 'x', 'set-cookie': ['y'] },
      a: [{ api_key: 1, clientSecret: 'z', passwd: null, credentialId: 'c1' }],
    });
    expect(last()).toMatchObject({
      headers: { Authorization: '[redacted]', 'set-cookie': '[redacted]' },
      a: [{ api_key: '[redacted]', clientSecret: '[redacted]', passwd: null, credentialId: 'c1' }],
    });
  });

  it('masks the password of a URL and keeps the rest', () => {
    const { logger, last } = recorded();
    logger.warn('cannot reach postgresql://engine:hunter2@db:5432/isthmus');
    expect(last()['message']).toBe('cannot reach postgresql://engine:[redacted]@db:5432/isthmus');
  });

  it('survives cycles, and whatever else it is given', () => {
    const { logger } = recorded();
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    logger.info('cycle', cycle);
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true }), (value) =>
        logger.info('any', { value }),
      ),
    );
  });

  it("carries Nest's own words: its start at debug, its errors with the class that speaks", () => {
    const { logger, last } = recorded();
    const nest = new NestLogger(logger);
    nest.log('Nest application started', 'NestApplication');
    expect(last()).toMatchObject({ level: 'debug', message: 'Nest application started', from: 'NestApplication' });
    nest.error('broken', 'Error: broken\n  at x', 'Handler');
    expect(last()).toMatchObject({ level: 'error', message: 'broken', stack: 'Error: broken\n  at x', from: 'Handler' });
  });
});
