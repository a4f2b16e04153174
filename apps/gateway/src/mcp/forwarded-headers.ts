type Pairs = readonly (readonly [string, string])[];

/** Headers that speak about one connection and not about the message. (RFC 9110 §7.6.1) */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
]);
/** What the replica learns from the passport instead, or has no business with. */
const KEPT_HERE: ReadonlySet<string> = new Set(['authorization', 'cookie', 'content-length', 'traceparent', 'tracestate']);

/** The request's headers as a replica may see them. */
export function forwardedHeaders(rawHeaders: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    pairs.push([(rawHeaders[at] as string).toLowerCase(), rawHeaders[at + 1] as string]);
  const named = connectionHeaders(pairs);
  return pairs.filter(([name]) => !HOP_BY_HOP.has(name) && !KEPT_HERE.has(name) && !named.has(name));
}

/** The replica's headers as they go out. The length is the connection's to say: the body may be sent in pieces. */
export function answeredHeaders(headers: Pairs): Record<string, string | string[]> {
  const answered: Record<string, string | string[]> = {};
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    if (HOP_BY_HOP.has(key) || key === 'content-length') continue;
    const before = answered[key];
    answered[key] = before === undefined ? value : [before, value].flat();
  }
  return answered;
}

const connectionHeaders = (pairs: Pairs): ReadonlySet<string> =>
  new Set(
    pairs.filter(([name]) => name === 'connection').flatMap(([, value]) => value.split(',').map((part) => part.trim().toLowerCase())),
  );
