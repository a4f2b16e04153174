// Leaves in node_modules what a running service can reach and nothing else. `npm prune --omit=dev` is not enough: the Prisma
// command line is an optional peer of its client, and so stays, with hundreds of megabytes behind it.
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';

const root = process.argv[2] ?? path.resolve(import.meta.dirname, '..');
const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'));

/** Where Node finds `name` when the package at `from` asks for it. */
function locate(name, from) {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const candidate = `${at ? `${at}/` : ''}node_modules/${name}`;
    if (Object.hasOwn(packages, candidate)) return candidate;
    if (!at) return undefined;
  }
}

function needs({ dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta }) {
  const peers = Object.keys(peerDependencies ?? {}).filter((name) => !peerDependenciesMeta?.[name]?.optional);
  return [...Object.keys(dependencies ?? {}), ...Object.keys(optionalDependencies ?? {}), ...peers];
}

const reached = new Set();
const queue = needs({ dependencies: packages[''].dependencies }).map((name) => locate(name, ''));
for (const place of queue) {
  if (!place || reached.has(place)) continue;
  reached.add(place);
  queue.push(...needs(packages[place]).map((name) => locate(name, place)));
}

const doomed = Object.entries(packages).filter(([place, { link }]) => place.includes('node_modules/') && !link && !reached.has(place));
for (const [place] of doomed) {
  // A package that stays may lie inside one that goes.
  if (![...reached].some((kept) => kept.startsWith(`${place}/`))) rmSync(path.join(root, place), { recursive: true, force: true });
}
console.log(`kept ${reached.size} packages, removed ${doomed.length}`);
