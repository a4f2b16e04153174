import { describe, expect, it } from '@jest/globals';
import { afterRefusal, approaches, VersionRefusal } from './version-policy.js';

const MODERN = { era: 'modern', revisions: ['2026-07-28'] };
const legacy = (...revisions: string[]) => ({ era: 'legacy', revisions });

describe('the ways to open a connection', () => {
  const cases = [
    ['only the modern revision', ['2026-07-28'], false, [MODERN]],
    ['only a modern revision, whatever was seen before', ['2026-07-28'], true, [MODERN]],
    ['both: modern first, the older era only after it', ['2025-11-25', '2026-07-28'], false, [MODERN, legacy('2025-11-25')]],
    ['both, known to need a handshake', ['2026-07-28', '2025-11-25'], true, [legacy('2025-11-25')]],
    ['older revisions in the order of the policy', ['2025-06-18', '2025-11-25'], false, [legacy('2025-06-18', '2025-11-25')]],
    ['no revision we speak', ['2031-01-01', '1999-01-01'], false, []],
  ] as const;
  it.each(cases)('%s', (_, allow, isKnownLegacy, expected) => {
    expect(approaches({ allow: [...allow] }, isKnownLegacy)).toEqual(expected);
  });
});

describe('after a refusal', () => {
  const left = [legacy('2025-11-25', '2025-06-18')] as Parameters<typeof afterRefusal>[0];

  it('tries what is left when the server named nothing', () => {
    expect(afterRefusal(left, [])).toEqual(left);
  });

  it('tries only what the server named', () => {
    expect(afterRefusal(left, ['2025-06-18', '2024-11-05'])).toEqual([legacy('2025-06-18')]);
    expect(afterRefusal(left, ['2024-11-05'])).toEqual([]);
  });

  it('takes only revisions out of what a server says', () => {
    expect(new VersionRefusal(['2025-11-25', '<script>', 7, 'x'.repeat(1e6)]).supported).toEqual(['2025-11-25']);
    expect(new VersionRefusal('2025-11-25').supported).toEqual([]);
    expect(new VersionRefusal(Array.from({ length: 100 }, () => '2025-11-25')).supported).toHaveLength(16);
  });
});
