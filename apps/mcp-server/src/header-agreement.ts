import type { JsonObject } from '@isthmus/protocol';
import { CODES, RpcError } from './rpc.js';
import { isObject } from './read-message.js';
import type { ParamHeader } from './param-headers.js';

/** Request headers by lower-case name; a header that came twice is joined, and so agrees with nothing. */
export type HeaderMap = ReadonlyMap<string, string>;

export const PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion';

export function headerMap(headers: readonly (readonly [string, string])[]): HeaderMap {
  const map = new Map<string, string>();
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    const earlier = map.get(key);
    map.set(key, earlier === undefined ? value : `${earlier}, ${value}`);
  }
  return map;
}

/** The methods whose target is mirrored in `Mcp-Name`, and where it stands. */
const NAMED: { readonly [method: string]: string } = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

/** A header that mirrors something of the body, and how the two compare. */
type Mirror = { readonly header: string; readonly body: unknown; readonly agrees: (header: string, body: unknown) => boolean };

const exact = (header: string, body: unknown): boolean => header === body;
const decoded = (header: string, body: unknown): boolean => decodeSentinel(header) === body;

function mirrorsOf(method: string, params: JsonObject): Mirror[] {
  const named = Object.hasOwn(NAMED, method) ? params[NAMED[method] as string] : undefined;
  const meta = params['_meta'];
  return [
    { header: 'MCP-Protocol-Version', body: isObject(meta) ? meta[PROTOCOL_VERSION] : undefined, agrees: exact },
    { header: 'Mcp-Method', body: method, agrees: exact },
    ...(named === undefined ? [] : [{ header: 'Mcp-Name', body: named, agrees: decoded }]),
  ];
}

/**
 * A header that is present and differs from the body is refused before anything else is looked at, the version included: an
 * intermediary may have routed by it. (spec/authz.md §7.3, rulings "MCP mount")
 */
export function refuseDifferences(headers: HeaderMap, method: string, params: JsonObject, paramHeaders: readonly ParamHeader[]): void {
  for (const { header, body, agrees } of [...mirrorsOf(method, params), ...mirroredParams(params, paramHeaders)]) {
    const value = headers.get(header.toLowerCase());
    // A body without a version is another error, told by whoever reads `_meta`.
    if (value === undefined || (body === undefined && header === 'MCP-Protocol-Version')) continue;
    if (!agrees(value, body)) throw mismatch(header, `The header ${header} differs from the body.`);
  }
}

/** What a request must mirror and does not. Looked at once its revision is known. */
export function refuseMissing(headers: HeaderMap, method: string, params: JsonObject, paramHeaders: readonly ParamHeader[]): void {
  for (const { header, body } of [...mirrorsOf(method, params), ...mirroredParams(params, paramHeaders)]) {
    if (body !== undefined && !headers.has(header.toLowerCase())) throw mismatch(header, `The header ${header} is missing.`);
  }
}

function mirroredParams(params: JsonObject, paramHeaders: readonly ParamHeader[]): Mirror[] {
  return paramHeaders.map(({ name, path, type }) => ({
    header: `Mcp-Param-${name}`,
    // null counts as absent: no header is sent for it. (SEP-2243)
    body:
      path.reduce<unknown>((value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined), params['arguments']) ??
      undefined,
    agrees: AGREES[type],
  }));
}

const AGREES: { readonly [T in ParamHeader['type']]: (header: string, body: unknown) => boolean } = {
  string: decoded,
  boolean: (header, body) => typeof body === 'boolean' && decodeSentinel(header) === String(body),
  integer: (header, body) => {
    const text = decodeSentinel(header);
    return typeof body === 'number' && text !== undefined && /^-?\d+(\.0+)?$/.test(text) && Number(text) === body;
  },
};

// The error names the header and repeats neither value: they may be somebody's data.
const mismatch = (header: string, message: string): RpcError => new RpcError(CODES.headerMismatch, message, { mismatch: { header } });

const SENTINEL = /^=\?base64\?(.*)\?=$/s;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * What a header value stands for: the text in a `=?base64?…?=` wrapper, else the value itself.
 * @returns undefined for a wrapper that holds no standard, padded base64 of UTF-8
 */
export function decodeSentinel(value: string): string | undefined {
  const base64 = SENTINEL.exec(value)?.[1];
  if (base64 === undefined) return value;
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') !== base64) return undefined;
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}
