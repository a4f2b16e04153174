import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { looksLikeCredential, maskCredentials } from './secrets.js';

describe('text that looks like a credential', () => {
  it.each([
    ['sk-live-abcdef123456', '[redacted]'],
    ['isk_0123456789abcdef01234567_secret', '[redacted]'],
    ['token=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N!', 'token=[redacted]!'],
    ['an AKIAIOSFODNN7EXAMPLE key', 'an [redacted] key'],
    ['ghp_abcdef gho_abcdef github_pat_11ABC_def', '[redacted] [redacted] [redacted]'],
    ['Authorization: Bearer abc.def', 'Authorization: [redacted]'],
    ['{"a":"bearer abc","b":1}', '{"a":"[redacted]","b":1}'],
    ['postgres://engine:p%40ss@db:5432/x and nats://u:p@n', 'postgres://engine:[redacted]@db:5432/x and nats://u:[redacted]@n'],
  ])('is masked in %s', (text, masked) => {
    expect(maskCredentials(text)).toBe(masked);
    expect(looksLikeCredential(text)).toBe(true);
  });

  it.each([
    'task-runner-abcdef',
    'risk-assessment',
    'sk-SK',
    'monkey.business.today',
    'eyes.are.blue',
    'https://host:8080/a@b',
    'the bearer',
    'AKIA',
    'a.b.c',
  ])('is not %s', (text) => {
    expect(maskCredentials(text)).toBe(text);
    expect(looksLikeCredential(text)).toBe(false);
  });

  it('stays masked however often it is masked, wherever it stands', () => {
    const credential = fc.stringMatching(/^(sk-[a-z0-9]{8}|ghp_[A-Za-z0-9]{20}|AKIA[A-Z0-9]{16}|eyJ[a-z]{8}\.[a-z]{8}\.[a-z]{8})$/);
    fc.assert(
      fc.property(fc.string(), credential, fc.string(), (before, secret, after) => {
        const masked = maskCredentials(`${before} ${secret} ${after}`);
        expect(masked).not.toContain(secret);
        expect(maskCredentials(masked)).toBe(masked);
      }),
    );
  });

  it.each(['ey', 'sk-', 'a://x:', 'bearer ', 'eyaaaaaaaa.', '-ey_', 'gh', 'AKIA'])(
    'is looked for once in hostile text made of %j',
    (piece) => {
      const text = piece.repeat(400_000 / piece.length);
      const began = performance.now();
      maskCredentials(text);
      expect(performance.now() - began).toBeLessThan(2_000);
    },
  );
});
