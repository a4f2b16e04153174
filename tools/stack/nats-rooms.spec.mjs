import { describe, expect, it } from '@jest/globals';
import { connect } from '@nats-io/transport-node';
import { startNats } from './nats.mjs';

describe('rooms of a test NATS', () => {
  it('hear themselves and nobody else; who names none is in the first', async () => {
    const nats = await startNats({ rooms: 2 });
    const connections = await Promise.all([
      connect({ servers: nats.url }),
      connect({ servers: nats.url, user: 'room-1', pass: 'room' }),
      connect({ servers: nats.url, user: 'room-2', pass: 'room' }),
    ]);
    try {
      const heard = connections.map(() => []);
      connections.forEach((connection, index) => {
        connection.subscribe('x', { callback: (_error, message) => heard[index].push(message.string()) });
      });
      await Promise.all(connections.map((connection) => connection.flush()));
      connections.forEach((connection, index) => {
        connection.publish('x', String(index));
      });
      for (const _round of [1, 2]) await Promise.all(connections.map((connection) => connection.flush()));
      expect(heard.map((messages) => messages.sort())).toEqual([['0', '1'], ['0', '1'], ['2']]);
    } finally {
      await Promise.all(connections.map((connection) => connection.close()));
      await nats.stop();
    }
  });
});
