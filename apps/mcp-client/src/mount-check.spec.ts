import { describe, expect, it } from '@jest/globals';
import { MountSpec, WopError } from '@isthmus/protocol';
import { checkMount } from './mount-check.js';

const check = (spec: object, refusal?: WopError) => () =>
  checkMount(MountSpec.parse({ url: 'https://mcp.example.com/mcp', ...spec }), () => refusal);

describe('a mount to be registered', () => {
  it('is taken when it can work', () => {
    expect(check({})).not.toThrow();
    expect(check({ versionPolicy: { allow: ['2031-01-01', '2025-11-25'] } })).not.toThrow();
  });

  it.each([
    ['a password in the URL', { url: 'https://me:secret@mcp.example.com/mcp' }],
    ['a fragment', { url: 'https://mcp.example.com/mcp#x' }],
    ['no revision we speak', { versionPolicy: { allow: ['2031-01-01'] } }],
    ['text no database holds', { description: 'a\u0000b' }],
  ])('is refused with %s, and none of it is repeated', (_, spec) => {
    expect(check(spec)).toThrow(expect.objectContaining({ code: 'validation_error', message: expect.not.stringContaining('secret') }));
  });

  it('is refused at an address that may not be called', () => {
    expect(check({}, new WopError('egress_denied', 'no'))).toThrow(expect.objectContaining({ code: 'egress_denied' }));
  });

  it('has a URL of http or https', () => {
    for (const url of ['ftp://example.com', 'file:///etc/passwd', 'javascript:alert(1)', 'mcp.example.com'])
      expect(MountSpec.safeParse({ url }).success).toBe(false);
  });
});
