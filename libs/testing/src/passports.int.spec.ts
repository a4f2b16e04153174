import { ChassisModule } from '@isthmus/chassis';
import { MessagingModule, Passports } from '@isthmus/messaging';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { NatsConnection } from '@nats-io/transport-node';
import { Module } from '@nestjs/common';
import { type BootedService, bootService } from './boot.js';
import { callerOf } from './caller.js';
import { testConnection, testNats } from './nats.js';
import { watchLeaks } from './no-leaks.js';
import { type PassportIssuer, passportIssuer } from './passports.js';
import { until } from './wait.js';

const config = {
  SERVICE_NAME: 'gateway',
  INSTANCE_ID: 'test',
  NATS_URL: testNats(),
  HEALTH_PORT: 0,
  HEALTH_HOST: '127.0.0.1',
  LOG_LEVEL: 'error',
  DRAIN_MS: 1_000,
} as const;

@Module({
  imports: [ChassisModule.forRoot(config), MessagingModule.forRoot({ service: 'gateway', natsUrl: config.NATS_URL, passports: true })],
})
class App {}

describe('an app under test', () => {
  let connection: NatsConnection;
  let issuer: PassportIssuer;
  let service: BootedService;
  let leaks: ReturnType<typeof watchLeaks>;

  beforeAll(async () => {
    // Inside of a hook, so that the timer of the hook itself is among what was there before.
    leaks = watchLeaks();
    connection = await testConnection();
    issuer = await passportIssuer(connection);
    service = await bootService(App, { service: 'gateway' });
  });
  afterAll(async () => {
    await service.stop();
    issuer.stop();
    await connection.close();
    await leaks.settled();
  });

  it('verifies the passports a test makes', async () => {
    const passports = service.app.get(Passports, { strict: false });
    const caller = callerOf({ tenant: 't1', scopes: ['runs:read'] });
    expect(await passports.verify(await issuer.passport(caller))).toEqual(caller);
  });

  it('refuses those that have expired and those of another issuer', async () => {
    const passports = service.app.get(Passports, { strict: false });
    await expect(passports.verify(await issuer.passport(callerOf(), { expiresInMs: -10_000 }))).rejects.toMatchObject({
      code: 'unauthenticated',
    });
    const stranger = await passportIssuer();
    await expect(passports.verify(await stranger.passport())).rejects.toMatchObject({ code: 'unauthenticated' });
  });

  it('hears of revocations the test makes', async () => {
    const passports = service.app.get(Passports, { strict: false });
    await until(() => passports.isFresh);
    const token = await issuer.passport(callerOf({ tenant: 't2' }));
    await passports.verify(token);
    const epoch = issuer.revoke('t2');
    await until(
      () =>
        passports.verify(token).then(
          () => false,
          () => true,
        ),
      { what: 'the revocation' },
    );
    await passports.verify(await issuer.passport(callerOf({ tenant: 't2', epoch })));
    await passports.verify(await issuer.passport(callerOf({ tenant: 't3' })));
  });
});
