// From a place in built code to its source.
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../paths.mjs';

const maps = new Map();

/** `name  path:line` of a frame, in TypeScript where there is a map. */
export function sourceOf({ functionName, url, lineNumber, columnNumber }) {
  const name = functionName || '(anonymous)';
  if (!url) return name;
  if (!url.startsWith('file:')) return `${name}  ${url}:${lineNumber + 1}`;
  const file = fileURLToPath(url);
  const entry = mapOf(file)?.findEntry(lineNumber, columnNumber);
  const place = entry?.originalSource ? [path.resolve(path.dirname(file), entry.originalSource), entry.originalLine] : [file, lineNumber];
  return `${name}  ${path.relative(root, place[0]).replace(/^.*node_modules\//, '')}:${place[1] + 1}`;
}

function mapOf(file) {
  if (!maps.has(file)) {
    const map = `${file}.map`;
    maps.set(file, existsSync(map) && !file.includes('node_modules') ? new SourceMap(JSON.parse(readFileSync(map, 'utf8'))) : undefined);
  }
  return maps.get(file);
}
