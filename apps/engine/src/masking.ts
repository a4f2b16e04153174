import { type Json, type JsonObject, looksLikeCredential, maskCredentials, type Variable } from '@isthmus/protocol';
import { MASKED } from './core/outputs.js';
import type { ValueRef } from './core/state.js';
import { Values } from './driver/values.js';
import type { StoredValue } from './store/run-log.js';

export type Masked = {
  readonly shown: JsonObject;
  readonly refs: Readonly<Record<string, ValueRef>>;
  readonly values: readonly StoredValue[];
};

/**
 * Inputs as the log may show them: those of `sensitive` variables and whatever looks like a credential are masked, and the
 * values stand in the run's value store, where nodes get them. (SR-1; rulings, Wire)
 */
export function maskInputs(inputs: JsonObject, variables: readonly Variable[]): Masked {
  const sensitive = new Set(variables.filter((variable) => variable.sensitive).map(({ name }) => name));
  const values = new Values();
  const refs: Record<string, ValueRef> = {};
  const shown = Object.entries(inputs).map(([name, value]): [string, Json] => {
    const isSensitive = sensitive.has(name);
    if (!isSensitive && !holdsCredential(value)) return [name, value];
    const kept = values.keep(`input:${name}`, value, { untrusted: false, secret: true });
    if (kept.is === 'ref') {
      const { is: _, ...ref } = kept;
      refs[name] = ref;
    }
    return [name, isSensitive ? MASKED : maskDeep(value)];
  });
  return { shown: Object.fromEntries(shown), refs, values: values.freshOf(Object.values(refs).map(({ ref }) => ref)) };
}

export function holdsCredential(value: Json): boolean {
  if (typeof value === 'string') return looksLikeCredential(value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, item]) => looksLikeCredential(key) || holdsCredential(item as Json));
}

function maskDeep(value: Json): Json {
  if (typeof value === 'string') return maskCredentials(value);
  if (Array.isArray(value)) return value.map(maskDeep);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [maskCredentials(key), maskDeep(item as Json)]));
}
