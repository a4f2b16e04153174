import { readFileSync } from 'node:fs';
import path from 'node:path';
import { root } from './paths.mjs';

const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
const lock = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'));

describe('the lock file', () => {
  it('names no registry: whatever registry npm is set to serves an install', () => {
    const resolved = Object.entries(lock.packages).filter(([, entry]) => entry.resolved && !entry.link);
    expect(resolved).toEqual([]);
  });

  it('belongs to package.json, where every version is exact', () => {
    const { dependencies, devDependencies } = manifest;
    expect(lock.packages['']).toMatchObject({ dependencies, devDependencies });
    const loose = Object.entries({ ...dependencies, ...devDependencies }).filter(([, version]) => !/^\d+\.\d+\.\d+/.test(version));
    expect(loose).toEqual([]);
  });

  it('holds an integrity for everything that is downloaded', () => {
    const bare = Object.entries(lock.packages).filter(
      ([place, entry]) => place.startsWith('node_modules/') && !entry.link && !entry.integrity && !entry.inBundle,
    );
    expect(bare.map(([place]) => place)).toEqual([]);
  });
});
