/** Headers that can only mean one thing. A second one is a fault or an attempt to make two readers disagree. */
const SINGLE: ReadonlySet<string> = new Set([
  'authorization',
  'content-length',
  'content-type',
  'host',
  'idempotency-key',
  'last-event-id',
  'origin',
  'transfer-encoding',
]);
/** Of those, the ones whose value has no comma: one in it says that two were joined on the way. */
const NO_COMMA: ReadonlySet<string> = new Set([
  'authorization',
  'content-length',
  'content-type',
  'host',
  'idempotency-key',
  'mcp-method',
  'mcp-protocol-version',
  'mcp-session-id',
  'origin',
]);

/**
 * The name of the first header that stands twice, or whose value was joined from two; undefined when all is well. Reads the
 * headers as they came: Node joins repeated ones, or silently drops the second.
 */
export function doubledHeader(rawHeaders: readonly string[]): string | undefined {
  const seen = new Set<string>();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase();
    const isSingle = SINGLE.has(name) || name.startsWith('mcp-');
    if (!isSingle) continue;
    if (seen.has(name) || (NO_COMMA.has(name) && (rawHeaders[at + 1] as string).includes(','))) return name;
    seen.add(name);
  }
  return undefined;
}
