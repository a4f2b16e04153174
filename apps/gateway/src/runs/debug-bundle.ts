import type { Json, JsonObject, RunEvent } from '@isthmus/protocol';
import { masked } from './masked.js';
import type { RunRecord } from './read-log.js';
import { withoutTokens } from './state-snapshot.js';

export const MAX_BUNDLE_BYTES = 8 * 1024 * 1024;

type Host = { readonly name: string; readonly version: string; readonly vendor: string };

/**
 * A run for a bug report: what it is and what happened to it, masked, without anything that opens a door, in at most `maxBytes`.
 * The log's beginning stays when it has to be cut: what follows from it can be told, what it followed from cannot.
 * (debug-bundle.schema.json)
 */
export function debugBundle(record: RunRecord, host: Host, generatedAt: string, maxBytes = MAX_BUNDLE_BYTES): JsonObject {
  const run = masked(withoutTokens(record.snapshot) as unknown as JsonObject);
  const around = (events: readonly Json[], isCut: boolean): JsonObject => ({
    // The schema wants two numbers where the prose has one. (families §8)
    bundleVersion: '1.0',
    generatedAt,
    host,
    run,
    events,
    // Spans go to the collector as they end; none are kept here.
    spans: [],
    metrics: { nodeCount: Object.keys(record.snapshot.nodeStates).length, eventCount: events.length },
    redactionApplied: true,
    redactionMode: 'mask',
    ...(isCut && { truncated: true, truncatedReason: 'events_truncated_to_size_cap' }),
  });
  // Room for the frame, with the counter at its longest and the reason it was cut.
  let bytes = sizeOf(around([], true)) + 16;
  const events: Json[] = [];
  for (const event of record.events) {
    const shown = shownEvent(event);
    bytes += sizeOf(shown) + 1;
    if (bytes > maxBytes) return around(events, true);
    events.push(shown);
  }
  return around(events, record.isCut);
}

/** The bundle's schema says `data` where events say `payload`. Both, so that either reader finds it. */
const shownEvent = (event: RunEvent): JsonObject => masked({ ...event, data: event.payload } as JsonObject);

const sizeOf = (value: Json): number => Buffer.byteLength(JSON.stringify(value));
