import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { PAGES } from './generate-docs.mjs';
import { root } from './paths.mjs';

describe('the generated pages', () => {
  it.each(Object.entries(PAGES))('%s says what the code says (node tools/generate-docs.mjs)', (page, make) => {
    expect(readFileSync(path.join(root, page), 'utf8')).toBe(make());
  });
});
