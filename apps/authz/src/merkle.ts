import { createHash } from 'node:crypto';

const parent = (left: string, right: string): string =>
  createHash('sha256')
    .update(left + right)
    .digest('hex');

/**
 * The root over hashes in their order. A parent is the SHA-256 of the hex text left, then right; the odd last one goes up as it
 * is. (RFC 0218)
 * @returns undefined when there is no leaf
 */
export function merkleRoot(leaves: readonly string[]): string | undefined {
  let level = leaves;
  while (level.length > 1) {
    const above: string[] = [];
    for (let at = 0; at < level.length; at += 2) {
      const [left = '', right] = level.slice(at, at + 2);
      above.push(right === undefined ? left : parent(left, right));
    }
    level = above;
  }
  return level[0];
}
