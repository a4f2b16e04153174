import { createHash } from 'node:crypto';
import { accessSync, constants, mkdirSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { Advice } from './say.mjs';

/** The clone. */
export const root = realpathSync(path.resolve(import.meta.dirname, '..'));

/** What a clone remembers between two starts; never committed. A second stack beside a running one brings a folder of its own. */
export const devDir = path.resolve(process.env.ISTHMUS_DEV_DIR ?? path.join(root, '.dev'));

/** A short name for that folder, for things that must lie outside of it. */
export const cloneId = createHash('sha256').update(devDir).digest('hex').slice(0, 12);

export function inDev(...names) {
  const full = path.join(devDir, ...names);
  mkdirSync(path.dirname(full), { recursive: true });
  return full;
}

/** One clear sentence when an earlier start by another user owns the folder. */
export function requireDevDir() {
  try {
    mkdirSync(devDir, { recursive: true });
    accessSync(devDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new Advice(`${devDir} cannot be written by this user (${error.code}): start as the user it belongs to, or remove it.`);
  }
}
