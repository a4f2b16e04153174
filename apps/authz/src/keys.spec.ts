import { describe, expect, it } from '@jest/globals';
import { mintKey, parseKey } from './keys.js';

const LITERAL = 'isk_000102030405060708090a0b_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8';

describe('API keys', () => {
  it('are safe in URLs and headers, and each is another', () => {
    const keys = Array.from({ length: 200 }, () => mintKey());
    for (const key of keys) expect(key).toMatch(/^isk_[0-9a-f]{24}_[A-Za-z0-9_-]{49}$/);
    expect(new Set(keys).size).toBe(200);
    expect(new Set(keys.map((key) => parseKey(key)?.keyId)).size).toBe(200);
  });

  it('carry a secret of 256 bits', () => {
    expect(Buffer.from(parseKey(mintKey())?.secret ?? '', 'base64url')).toHaveLength(32);
  });

  it('keep their format, so that keys of today are keys of tomorrow', () => {
    expect(parseKey(`${LITERAL}6oQi9f`)).toEqual({
      keyId: '000102030405060708090a0b',
      secret: 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8',
    });
  });

  it('are dropped by their checksum when a single character differs', () => {
    const key = mintKey();
    for (let at = 0; at < key.length; at += 1) {
      const other = key[at] === 'a' ? 'b' : 'a';
      expect(parseKey(key.slice(0, at) + other + key.slice(at + 1))).toBeUndefined();
    }
  });

  it.each([
    '',
    'isk_',
    'hk_definitely_not_a_real_key_12345',
    `${LITERAL}`,
    ` ${mintKey()}`,
    `${mintKey()}\n`,
    `${mintKey()}a`,
    'é'.repeat(4_096),
  ])('are not what others made up: %j', (token) => {
    expect(parseKey(token)).toBeUndefined();
  });
});
