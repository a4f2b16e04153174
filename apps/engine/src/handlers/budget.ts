import {
  type Json,
  type JsonObject,
  MESSAGE_BUDGET_BYTES,
  type OpenInterrupt,
  type RunOutcome,
  type RunSnapshot,
  WopError,
} from '@isthmus/protocol';
import { sha256 } from '../driver/values.js';

export const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? '');

/** As many of `items` as fit into one message, one at least. */
export function fittedPage<T>(items: readonly T[]): readonly T[] {
  let bytes = 0;
  const fits = items.findIndex((item, index) => {
    bytes += bytesOf(item) + 1;
    return bytes > MESSAGE_BUDGET_BYTES && index > 0;
  });
  return fits < 0 ? items : items.slice(0, fits);
}

/** What is left of a message may be small, but never so small that a snapshot of hashes does not fit. */
const LEAST_BYTES = 64 * 1024;
/** Values above this many bytes are shown by hash and size, the largest first, until the rest fits. */
const STEPS = [64 * 1024, 16 * 1024, 4 * 1024, 1024, 200];

/** A snapshot that fits into one message beside `used` bytes: a run can be looked at, however large its values are. (traps 4) */
export const fittedSnapshot = (snapshot: RunSnapshot, used: number): RunSnapshot =>
  fitted(snapshot, Math.max(MESSAGE_BUDGET_BYTES - used, LEAST_BYTES), shortened);

/**
 * An outcome that fits into one message. What is asked may be shown by hash and size; outputs are whole or an error.
 * @throws WopError `payload_too_large`
 */
export function fittedOutcome(outcome: RunOutcome): RunOutcome {
  if (outcome.is === 'waiting')
    return fitted(outcome, MESSAGE_BUDGET_BYTES, (waiting, limit) => ({
      ...waiting,
      interrupts: waiting.interrupts.map(interruptWithin(limit)),
    }));
  const bytes = bytesOf(outcome);
  if (bytes <= MESSAGE_BUDGET_BYTES) return outcome;
  throw new WopError(
    'payload_too_large',
    `The outputs of the run are ${bytes} bytes; at most ${MESSAGE_BUDGET_BYTES} can be given at once.`,
    {
      bytes,
      limit: MESSAGE_BUDGET_BYTES,
    },
  );
}

function fitted<T>(whole: T, budget: number, shorten: (value: T, limit: number) => T): T {
  let shown = whole;
  for (const limit of STEPS) {
    if (bytesOf(shown) <= budget) return shown;
    shown = shorten(shown, limit);
  }
  return shown;
}

const shortened = (snapshot: RunSnapshot, limit: number): RunSnapshot => ({
  ...snapshot,
  inputs: membersWithin(limit)(snapshot.inputs),
  variables: membersWithin(limit)(snapshot.variables),
  ...(snapshot.outputs !== undefined && {
    outputs: isObject(snapshot.outputs) ? membersWithin(limit)(snapshot.outputs) : within(snapshot.outputs, limit),
  }),
  ...(snapshot.interrupt && { interrupt: interruptWithin(limit)(snapshot.interrupt) }),
  ...(snapshot.interrupts && { interrupts: snapshot.interrupts.map(interruptWithin(limit)) }),
});

const interruptWithin =
  (limit: number) =>
  (interrupt: OpenInterrupt): OpenInterrupt => ({ ...interrupt, payload: membersWithin(limit)(interrupt.payload) });

const membersWithin =
  (limit: number) =>
  (values: JsonObject): Record<string, Json> =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, within(value, limit)]));

/** As the log shows what it does not carry; its trust stays beside it. */
function within(value: Json, limit: number): Json {
  const text = JSON.stringify(value);
  const length = Buffer.byteLength(text);
  if (length <= limit) return value;
  const trust = isObject(value) && value['contentTrust'] === 'untrusted';
  return { sha256: sha256(text), length, ...(trust && { contentTrust: 'untrusted' }) };
}

const isObject = (value: Json): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);
