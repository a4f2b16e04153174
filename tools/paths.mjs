import { createHash } from 'node:crypto';
import { mkdirSync, realpathSync } from 'node:fs';
import path from 'node:path';

/** The clone. */
export const root = realpathSync(path.resolve(import.meta.dirname, '..'));

/** What a clone remembers between two starts; never committed. */
export const devDir = path.join(root, '.dev');

/** A short name for this clone, for things that must lie outside of it. */
export const cloneId = createHash('sha256').update(root).digest('hex').slice(0, 12);

export function inDev(...names) {
  const full = path.join(devDir, ...names);
  mkdirSync(path.dirname(full), { recursive: true });
  return full;
}
