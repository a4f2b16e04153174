import { afterAll, describe, expect, it } from '@jest/globals';
import { createLogger } from '@isthmus/chassis';
import { ANYWHERE, Egress } from '@isthmus/egress';
import type { WopError } from '@isthmus/protocol';
import type { WebhookSettings } from './settings.js';
import { checkTarget } from './target.js';

const NAMES: Readonly<Record<string, string>> = { 'hooks.example.com': '93.184.216.34', 'inside.example.com': '10.0.0.7' };
const logger = createLogger({ service: 'engine', instance: 'test', level: 'silent' });
const resolve = async (name: string) => {
  const address = NAMES[name];
  if (!address) throw new Error('ENOTFOUND');
  return [{ address, family: 4 }];
};
const hosts = {
  public: { settings: { plainHttp: false, verify: true } as WebhookSettings, egress: new Egress([], logger, resolve) },
  test: { settings: { plainHttp: true, verify: false } as WebhookSettings, egress: new Egress(ANYWHERE, logger, resolve) },
};
afterAll(async () => {
  for (const { egress } of Object.values(hosts)) await egress.close();
});

const verdict = (url: string, { settings, egress } = hosts.public): Promise<unknown> =>
  checkTarget(url, egress, settings).then(
    () => 'taken',
    ({ code, details }: WopError) => `${code} ${details?.['reason'] ?? ''}`.trim(),
  );

describe('a webhook target', () => {
  it.each([
    ['https://hooks.example.com/x?y=1', 'taken'],
    ['https://93.184.216.34/', 'taken'],
    ['http://hooks.example.com/', 'webhook_url_rejected scheme'],
    ['ftp://hooks.example.com/', 'webhook_url_rejected scheme'],
    ['https://127.0.0.1/', 'webhook_url_rejected address'],
    ['http://127.0.0.1:9/', 'webhook_url_rejected scheme'],
    ['https://2130706433/', 'webhook_url_rejected address'],
    ['https://[::1]/', 'webhook_url_rejected address'],
    ['https://[fd00::1]/', 'webhook_url_rejected address'],
    ['https://localhost/', 'webhook_url_rejected address'],
    ['https://169.254.169.254/latest/meta-data', 'webhook_url_rejected address'],
    ['https://inside.example.com/', 'webhook_url_rejected address'],
    ['https://nowhere.example.com/', 'webhook_url_rejected address'],
    ['https://user:pass@hooks.example.com/', 'validation_error'],
    ['https://hooks.example.com/#part', 'validation_error'],
  ])('%s: %s', async (url, expected) => {
    expect(await verdict(url)).toBe(expected);
  });

  it.each(['http://127.0.0.1:9/', 'https://nowhere.example.com/', 'http://10.0.0.7/'])(
    '%s is taken where the whole host is a test',
    async (url) => {
      expect(await verdict(url, hosts.test)).toBe('taken');
    },
  );

  it('is not some other scheme even there', async () => {
    expect(await verdict('ftp://127.0.0.1/', hosts.test)).toBe('webhook_url_rejected scheme');
  });
});
