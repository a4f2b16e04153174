import { type Json, maskCredentials } from '@isthmus/protocol';

/** A copy without text that looks like a credential, at any depth and in names too. The log is masked when it is written; what is handed on is masked again. */
export function masked<T extends Json>(value: T): T;
export function masked(value: Json): Json {
  if (typeof value === 'string') return maskCredentials(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: Json) => masked(item));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [maskCredentials(name), masked(item as Json)]));
}
