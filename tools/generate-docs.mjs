// Writes the pages of docs/ that are tables of the code: `node tools/generate-docs.mjs` (after a build). A test keeps them equal.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ERRORS } from '@isthmus/protocol';
import { root } from './paths.mjs';

export const PAGES = { 'docs/errors.md': errorsPage };

function errorsPage() {
  const rows = Object.entries(ERRORS)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([code, { status, retriable, mcp, means }]) =>
        `| \`${code}\` | ${status} | ${retriable ? 'yes' : ''} | ${mcp ?? -32603} | ${means} |`,
    );
  return [
    '# Errors',
    '',
    '<!-- generated from ERRORS in libs/protocol/src/errors.ts by tools/generate-docs.mjs -->',
    '',
    'Every answer that is not a success is `{"error": code, "message": text, "details": {…}?}`: the code is for programs, the message',
    'for people, the details for both. *Again* says whether the same request may succeed later. *MCP* is the JSON-RPC code where the',
    'error crosses the MCP mount.',
    '',
    '| code | status | again | MCP | means |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const [page, make] of Object.entries(PAGES)) writeFileSync(path.join(root, page), make());
