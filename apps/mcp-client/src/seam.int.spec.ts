import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readConfig } from '@isthmus/chassis';
import { Bus } from '@isthmus/messaging';
import { type Contract, type Input, mcpClient, type Output } from '@isthmus/protocol';
import {
  type BootedService,
  bootService,
  callerOf,
  modernPeer,
  type ModernPeer,
  type PassportIssuer,
  passportIssuer,
  testConnection,
  testDatabase,
  type TestDatabase,
  testNats,
} from '@isthmus/testing';
import type { NatsConnection } from '@nats-io/transport-node';
import { AppModule } from './app.module.js';
import { Config } from './config.js';

let connection: NatsConnection;
let issuer: PassportIssuer;
let database: TestDatabase;
let remote: ModernPeer;
beforeAll(async () => {
  connection = await testConnection();
  issuer = await passportIssuer(connection);
  database = await testDatabase();
  remote = await modernPeer();
});
afterAll(async () => {
  await remote.close();
  issuer.stop();
  await connection.close();
  await database.drop();
});

/** A process that may call the public internet and nothing else, with the gate as told. */
async function service(gate?: string): Promise<BootedService> {
  const config = readConfig(Config, {
    SERVICE_NAME: 'mcp-client',
    NATS_URL: testNats(),
    DATABASE_URL: database.serviceUrl('mcp-client'),
    LOG_LEVEL: 'error',
    ...(gate !== undefined && { OPENWOP_TEST_SEAM_ENABLED: gate }),
  });
  return bootService(AppModule.forRoot(config), { service: 'mcp-client' });
}
const ask = async <C extends Contract>(booted: BootedService, contract: C, input: Input<C>): Promise<Output<C>> =>
  booted.app.get(Bus, { strict: false }).call(contract, input, { passport: await issuer.passport(callerOf()) });
const echo = (rest: Partial<Input<typeof mcpClient.callEndpoint>> = {}): Input<typeof mcpClient.callEndpoint> => ({
  url: remote.url,
  toolName: 'echo',
  arguments: { text: 'hello' },
  invocationId: 'an-invocation-0000001',
  round: 0,
  ...rest,
});

describe('a call of an address that is no mount', () => {
  it.each([undefined, 'false', '1', 'TRUE'])('is not served with the gate at %s', async (gate) => {
    const booted = await service(gate);
    try {
      await expect(ask(booted, mcpClient.callEndpoint, echo())).rejects.toMatchObject({ code: 'not_found' });
      expect(remote.requests).toEqual([]);
    } finally {
      await booted.stop();
    }
  });

  it('reaches this machine where it is served, and only this way leads there', async () => {
    const booted = await service('true');
    try {
      const reply = await ask(booted, mcpClient.callEndpoint, echo());
      expect(reply).toMatchObject({ is: 'complete', negotiatedVersion: '2026-07-28', result: { structuredContent: { text: 'hello' } } });
      expect(remote.calls('echo')[0]?.headers['idempotency-key']).toBe('an-invocation-0000001');
      await expect(ask(booted, mcpClient.putMount, { serverId: 'local', spec: { url: remote.url } })).rejects.toMatchObject({
        code: 'egress_denied',
      });
      // Of the addresses that are not public, this machine's and no others.
      await expect(ask(booted, mcpClient.callEndpoint, echo({ url: 'http://169.254.169.254/' }))).rejects.toMatchObject({
        code: 'egress_denied',
      });
      await expect(ask(booted, mcpClient.callEndpoint, echo({ url: 'http://10.0.0.1/' }))).rejects.toMatchObject({ code: 'egress_denied' });
      await expect(ask(booted, mcpClient.callEndpoint, echo({ revision: '1999-01-01' }))).rejects.toMatchObject({
        code: 'interop_version_unsupported',
        details: { retriable: false, protocol: 'mcp', requested: '1999-01-01', supported: expect.arrayContaining(['2026-07-28']) },
      });
      // The peer speaks no older one, and is not spoken to in another than was asked for.
      await expect(ask(booted, mcpClient.callEndpoint, echo({ revision: '2025-11-25' }))).rejects.toMatchObject({
        code: 'interop_version_unsupported',
      });
    } finally {
      await booted.stop();
    }
  });
});
