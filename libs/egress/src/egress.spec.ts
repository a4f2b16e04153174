import { afterEach, describe, expect, it } from '@jest/globals';
import { createLogger } from '@isthmus/chassis';
import { Egress } from './egress.js';
import { ANYWHERE, type Cidr } from './egress-policy.js';

const opened: Egress[] = [];
afterEach(async () => {
  for (const egress of opened.splice(0)) await egress.close();
});
const egressTo = (addresses: readonly string[] | Error, allow: readonly Cidr[] = []) => {
  const logger = createLogger({ service: 'test', instance: 'test', level: 'silent' });
  const egress = new Egress(allow, logger, async () => {
    if (addresses instanceof Error) throw addresses;
    return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  });
  opened.push(egress);
  return egress;
};

describe('asking whether a name may be called', () => {
  it('is yes for a public one', async () => {
    expect(await egressTo(['93.184.216.34', '2606:2800:220:1:248:1893:25c8:1946']).check('hooks.example.com')).toBeUndefined();
  });

  it.each([[['10.0.0.7']], [['93.184.216.34', '169.254.169.254']], [['::ffff:127.0.0.1']]])(
    'is no when it has the address %j',
    async (addresses) => {
      const refusal = await egressTo(addresses).check('hooks.example.com');
      expect(refusal).toMatchObject({ code: 'egress_denied', details: { host: 'hooks.example.com' } });
      expect(JSON.stringify(refusal?.toEnvelope())).not.toContain(addresses.at(-1));
    },
  );

  it('is no when nobody knows the name, and when it is an address of ours', async () => {
    expect(await egressTo(new Error('ENOTFOUND')).check('nowhere.example')).toMatchObject({ details: { reason: 'unresolvable' } });
    expect(await egressTo([]).check('nowhere.example')).toMatchObject({ code: 'egress_denied' });
    for (const host of ['127.0.0.1', '[::1]', 'localhost', '169.254.169.254'])
      expect(await egressTo(['93.184.216.34']).check(host)).toMatchObject({ code: 'egress_denied' });
  });

  it('is yes for every address where the whole host is a test', async () => {
    for (const host of ['127.0.0.1', '[::1]', 'localhost', '10.0.0.7']) expect(await egressTo([], ANYWHERE).check(host)).toBeUndefined();
  });
});
