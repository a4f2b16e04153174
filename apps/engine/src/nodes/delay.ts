import { z } from 'zod';
import { failed, pureNode } from './node-type.js';

const MAX_MS = 30 * 24 * 3_600_000;
const Duration = z.looseObject({ delayMs: z.number().optional(), ms: z.number().optional(), durationMs: z.number().optional() });

const durationOf = ({ delayMs, ms, durationMs }: z.infer<typeof Duration>): number | undefined => delayMs ?? ms ?? durationMs;

/** `core.delay`: sleeps `delayMs`, counted from when the node began, so that a takeover does not start it again. */
export const delay = pureNode({
  role: 'control',
  config: Duration,
  inputs: Duration,
  run: ({ startedAt, now, nodeId }, config, inputs) => {
    const duration = durationOf(inputs) ?? durationOf(config);
    if (duration === undefined)
      return failed('validation_error', `Node "${nodeId}" (core.delay) has neither an input nor a config "delayMs".`);
    if (!(duration >= 0 && duration <= MAX_MS))
      return failed('validation_error', `The delay of node "${nodeId}" must be 0 to ${MAX_MS} ms.`);
    const until = startedAt + Math.ceil(duration);
    return now >= until ? { is: 'completed', outputs: {} } : { is: 'asleep', until };
  },
});
