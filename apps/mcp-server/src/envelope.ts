import type { JsonObject } from '@isthmus/protocol';
import { type HeaderMap, PROTOCOL_VERSION } from './header-agreement.js';
import { isObject } from './read-message.js';
import { REVISIONS } from './revisions.js';
import { CODES, invalidParams, RpcError } from './rpc.js';

const CLIENT_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const CLIENT_INFO = 'io.modelcontextprotocol/clientInfo';

/** What every request says about itself. Valid for this request only. (spec/mcp.md §1.2) */
export type Envelope = { readonly meta: JsonObject; readonly capabilities: JsonObject };

/** Which revision the request is of, then whether it says all that this revision wants to know. */
export function readEnvelope(headers: HeaderMap, method: string, params: JsonObject): Envelope {
  const meta = isObject(params['_meta']) ? params['_meta'] : {};
  const header = headers.get('mcp-protocol-version');
  const named = Object.hasOwn(meta, PROTOCOL_VERSION) ? meta[PROTOCOL_VERSION] : undefined;
  if (named === undefined)
    throw header !== undefined && REVISIONS.includes(header) ? missing(PROTOCOL_VERSION) : unsupported(header ?? offered(method, params));
  if (typeof named !== 'string') throw malformed(PROTOCOL_VERSION, 'a string');
  if (!REVISIONS.includes(named)) throw unsupported(named);
  const capabilities = Object.hasOwn(meta, CLIENT_CAPABILITIES) ? meta[CLIENT_CAPABILITIES] : undefined;
  if (capabilities === undefined) throw missing(CLIENT_CAPABILITIES);
  if (!isObject(capabilities)) throw malformed(CLIENT_CAPABILITIES, 'an object');
  const info = Object.hasOwn(meta, CLIENT_INFO) ? meta[CLIENT_INFO] : undefined;
  if (info !== undefined && !(isObject(info) && typeof info['name'] === 'string' && typeof info['version'] === 'string')) {
    throw malformed(CLIENT_INFO, 'an object with name and version');
  }
  return { meta, capabilities };
}

/** A client of an earlier era names its revision in `initialize`: telling it ours is the way to a clear message. (§1.12) */
const offered = (method: string, params: JsonObject): string | undefined => {
  const version = method === 'initialize' ? params['protocolVersion'] : undefined;
  return typeof version === 'string' ? version.slice(0, 64) : undefined;
};

const unsupported = (requested: string | undefined): RpcError =>
  new RpcError(CODES.unsupportedProtocolVersion, 'The protocol revision of the request is not one that is served here.', {
    supported: REVISIONS,
    ...(requested !== undefined && { requested: requested.slice(0, 64) }),
  });

const missing = (key: string): RpcError => envelopeError(`_meta must carry ${key}.`, { key, problem: 'missing' });
const malformed = (key: string, what: string): RpcError => envelopeError(`${key} in _meta must be ${what}.`, { key, problem: 'malformed' });
/** In `_meta` it is the request that is malformed, not its content: 400. (§1.4) */
const envelopeError = (message: string, envelope: JsonObject): RpcError => {
  const { code, data } = invalidParams(message, { envelope });
  return new RpcError(code, message, data, { status: 400 });
};
