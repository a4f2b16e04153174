import { MASK, maskCredentials } from '@isthmus/protocol';

/** Members whose value is a secret whatever it looks like; compared without case, dashes and underscores. */
const SECRET_NAMES: ReadonlySet<string> = new Set([
  'authorization',
  'proxyauthorization',
  'cookie',
  'setcookie',
  'token',
  'accesstoken',
  'refreshtoken',
  'idtoken',
  'apikey',
  'xapikey',
  'key',
  'privatekey',
  'password',
  'passwd',
  'secret',
  'clientsecret',
  'credential',
  'credentials',
  'passport',
  'woppassport',
  'requeststate',
]);

const isSecretName = (name: string): boolean => SECRET_NAMES.has(name.replace(/[-_]/g, '').toLowerCase());

const MAX_DEPTH = 8;

/** A copy of `value` that may be written to a log: secrets masked at any depth, errors as name, message and stack. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return maskCredentials(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return typeof value === 'function' || typeof value === 'symbol' ? undefined : value;
  // Bounds cycles as well.
  if (depth >= MAX_DEPTH) return '[deeper]';
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Error) return redactError(value, depth);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return Object.fromEntries(
    entries.map(([name, item]) => [
      maskCredentials(String(name)),
      isSecretName(String(name)) && item != null ? MASK : redact(item, depth + 1),
    ]),
  );
}

function redactError(error: Error, depth: number): Record<string, unknown> {
  const { name, message, stack, cause, ...rest } = error as Error & Record<string, unknown>;
  return {
    name,
    message: maskCredentials(String(message)),
    ...(typeof stack === 'string' && { stack: maskCredentials(stack) }),
    ...(redact(rest, depth + 1) as object),
    ...(cause !== undefined && { cause: redact(cause, depth + 1) }),
  };
}
