import { createHash } from 'node:crypto';
import type { Json } from '@isthmus/protocol';
import type { Read, Taint } from '../core/inputs.js';
import { contentOf } from '../core/outputs.js';
import { inline, type Stored } from '../core/state.js';
import type { StoredValue } from '../store/run-log.js';
import { INLINE_BYTES } from './settings.js';

/** What a driver knows of its run's value store: what it loaded, and what it will write with its next batch. */
export class Values {
  private readonly known = new Map<string, Json>();
  private readonly fresh = new Map<string, StoredValue>();

  learn(values: ReadonlyMap<string, Json>): void {
    for (const [ref, value] of values) this.known.set(ref, value);
  }

  has(ref: string): boolean {
    return this.known.has(ref);
  }

  readonly read: Read = (stored) =>
    stored.is === 'ref' && this.known.has(stored.ref) ? (this.known.get(stored.ref) as Json) : contentOf(stored);

  /** Inline, unless the value is untrusted, secret or large: then it goes to the store under `ref`. */
  keep(ref: string, value: Json, { untrusted, secret }: Taint): Stored {
    const text = JSON.stringify(value);
    if (!untrusted && !secret && text.length <= INLINE_BYTES) return inline(value);
    const where = { ref, sha256: sha256(text), bytes: Buffer.byteLength(text), untrusted, ...(secret && { secret: true as const }) };
    this.known.set(ref, value);
    this.fresh.set(ref, { ...where, value });
    return { is: 'ref', ...where };
  }

  /** What an append that refers to `refs` has to write. */
  freshOf(refs: readonly string[]): readonly StoredValue[] {
    return refs.flatMap((ref) => this.fresh.get(ref) ?? []);
  }

  written(values: readonly StoredValue[]): void {
    for (const { ref } of values) this.fresh.delete(ref);
  }
}

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
