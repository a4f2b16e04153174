import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ChassisModule } from '@isthmus/chassis';
import { HEADERS, type Input, mcpClient } from '@isthmus/protocol';
import { answer, type BootedService, bootService, testConnection, testNats } from '@isthmus/testing';
import type { NatsConnection } from '@nats-io/transport-node';
import { Module } from '@nestjs/common';
import { Bus } from './bus.js';
import { MessagingModule } from './messaging.module.js';

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
  imports: [ChassisModule.forRoot(config), MessagingModule.forRoot({ service: 'gateway', natsUrl: config.NATS_URL, passports: false })],
})
class App {}

const CALL: Input<typeof mcpClient.callTool> = {
  serverId: 's',
  toolName: 't',
  arguments: {},
  invocationId: 'x'.repeat(16),
  runId: 'r',
  round: 0,
  startWithinMs: 1,
};

describe('a call whose handler tells that it is alive', () => {
  let connection: NatsConnection;
  let service: BootedService;
  let bus: Bus;
  beforeAll(async () => {
    connection = await testConnection();
    service = await bootService(App, { service: 'gateway' });
    bus = service.app.get(Bus, { strict: false });
  });
  afterAll(async () => {
    await service.stop();
    await connection.close();
  });
  const LOST = { code: 'service_unavailable', details: { lost: true } };

  it.each([
    ['before its first sound', 0],
    ['after it', 1],
  ])('is given up long before its deadline when that dies %s', async (_, sounds) => {
    const taken = connection.subscribe(mcpClient.callTool.subject, {
      queue: 'mcp-client',
      callback: (_error, message) => {
        for (let sound = 0; sound < sounds; sound += 1) connection.publish(message.headers?.get(HEADERS.heartbeat) ?? '');
      },
    });
    await connection.flush();
    const began = performance.now();
    await expect(bus.call(mcpClient.callTool, CALL, { deadlineMs: 60_000 })).rejects.toMatchObject(LOST);
    expect(performance.now() - began).toBeLessThan(10_000);
    taken.unsubscribe();
  });

  it('is not given up while nobody is there to take it, and is answered by whoever comes', async () => {
    const late = { is: 'complete', result: {}, isError: false, negotiatedVersion: '2026-07-28' } as const;
    const asked = bus.call(mcpClient.callTool, CALL, { deadlineMs: 60_000 });
    const stop = answer(connection, mcpClient.callTool, () => late);
    expect(await asked).toEqual(late);
    stop();
  });
});
