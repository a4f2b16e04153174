import { natsAddress } from '@isthmus/chassis';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { testEnvironment } from './environment.js';

/**
 * The URL of a NATS server on which this test file is alone: each jest worker is a user with an account of its own. (A server
 * without accounts, from NATS_URL, takes any user.)
 */
export function testNats(): string {
  const { TEST_NATS_URL, JEST_WORKER_ID } = testEnvironment();
  const url = new URL(TEST_NATS_URL);
  url.username = `room-${JEST_WORKER_ID}`;
  url.password = 'room';
  return url.href;
}

/** A raw connection, for tests that speak to a service from outside. Close it. */
export const testConnection = (): Promise<NatsConnection> =>
  connect({ ...natsAddress(testNats()), name: 'test', maxReconnectAttempts: -1, reconnectTimeWait: 50 });
