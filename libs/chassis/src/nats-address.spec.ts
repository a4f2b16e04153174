import { describe, expect, it } from '@jest/globals';
import { natsAddress } from './nats-address.js';

describe('the address of NATS', () => {
  it.each([
    ['nats://127.0.0.1:4222', { servers: ['nats://127.0.0.1:4222'] }],
    ['127.0.0.1:4222', { servers: ['nats://127.0.0.1:4222'] }],
    ['nats://engine:p%40ss@one:4222,nats://two:4222', { servers: ['nats://one:4222', 'nats://two:4222'], user: 'engine', pass: 'p@ss' }],
    ['nats://token@one:4222', { servers: ['nats://one:4222'], token: 'token' }],
  ])('%s', (url, address) => {
    expect(natsAddress(url)).toEqual(address);
  });
});
