import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT' || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Whoever reads `file` sees the old content or the new one, never half of it. */
export function writeAtomically(file, content, mode = 0o644) {
  const draft = `${file}.${process.pid}.tmp`;
  writeFileSync(draft, content, { mode });
  renameSync(draft, file);
}

/** Every file below `folder`, as sorted relative paths. */
export const filesBelow = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath ?? entry.path, entry.name)))
    .sort();

/** One hash over the names and the bytes of `files`. */
export function fingerprint(folder, files, ...extra) {
  const hash = createHash('sha256');
  for (const text of extra) hash.update(`${text}\0`);
  for (const file of files)
    hash
      .update(`${file}\0`)
      .update(readFileSync(path.join(folder, file)))
      .update('\0');
  return hash.digest('hex');
}
