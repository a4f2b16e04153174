import { describe, expect, it } from '@jest/globals';
import { mayAsk } from './allowed-origin.js';

const config = {
  PUBLIC_URL: 'https://wop.example.com',
  ALLOWED_HOSTS: ['internal:8443', 'other.example.com'],
  ALLOWED_ORIGINS: ['https://app.example.com'],
};

describe('Host and Origin of the MCP mount', () => {
  it.each([
    '127.0.0.1:8080',
    'localhost',
    'LOCALHOST:1',
    '[::1]:8080',
    'wop.example.com',
    'wop.example.com:443',
    'internal:8443',
    'other.example.com:99',
  ])('serves Host %s', (host) => {
    expect(mayAsk({ host }, config)).toBe(true);
  });

  it.each([
    undefined,
    '',
    'evil.example.com',
    'internal:1',
    'localhost.evil.com',
    '127.0.0.1.evil.com',
    'evil.com#localhost',
    'evil@localhost',
    'localhost/x',
    'local host',
  ])('refuses Host %j', (host) => {
    expect(mayAsk({ host }, config)).toBe(false);
  });

  it.each(['http://localhost:3000', 'https://wop.example.com', 'https://app.example.com', 'http://[::1]:9'])(
    'serves pages of %s',
    (origin) => {
      expect(mayAsk({ host: 'localhost', origin }, config)).toBe(true);
    },
  );

  it.each([
    'https://evil.example.com',
    'http://wop.example.com',
    'null',
    '',
    'https://app.example.com.evil.com',
    'https://localhost@evil.com',
    'file://',
    'https://app.example.com/path',
  ])('refuses pages of %j', (origin) => {
    expect(mayAsk({ host: 'localhost', origin }, config)).toBe(false);
  });
});
