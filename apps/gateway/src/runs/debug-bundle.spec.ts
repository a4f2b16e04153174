import { describe, expect, it } from '@jest/globals';
import { type Json, type RunSnapshot, toRunEvent } from '@isthmus/protocol';
import { debugBundle, MAX_BUNDLE_BYTES } from './debug-bundle.js';
import type { RunRecord } from './read-log.js';

const HOST = { name: 'isthmus', version: '1', vendor: 'v' };
const AT = '2026-01-01T00:00:00.000Z';
const record = (payloads: readonly Json[], snapshot: object = {}, isCut = false): RunRecord => ({
  runId: 'r',
  status: 'completed',
  isCut,
  events: payloads.map((payload, sequence) => toRunEvent('r', sequence, new Date(0), { type: 'node.completed', payload })),
  snapshot: {
    runId: 'r',
    workflowId: 'w',
    status: 'completed',
    nodeStates: { a: {}, b: {} },
    variables: {},
    ...snapshot,
  } as unknown as RunSnapshot,
});
type Bundle = { events: { data: Json; payload: Json }[]; metrics: { eventCount: number } } & Record<string, Json>;
const bundleOf = (...args: Parameters<typeof record>): Bundle => debugBundle(record(...args), HOST, AT) as unknown as Bundle;

describe('the debug bundle of a run', () => {
  it('says what it is, what it was made of, and that it is masked', () => {
    const { events, ...rest } = bundleOf([{ nodeId: 'a' }]);
    expect(rest).toMatchObject({
      bundleVersion: '1.0',
      generatedAt: AT,
      host: HOST,
      run: { runId: 'r', status: 'completed' },
      metrics: { nodeCount: 2, eventCount: 1 },
      redactionApplied: true,
      redactionMode: 'mask',
    });
    expect(rest).not.toHaveProperty('truncated');
    expect(events).toEqual([expect.objectContaining({ sequence: 0, payload: { nodeId: 'a' }, data: { nodeId: 'a' } })]);
  });

  it('holds no credential, wherever it stood, and no token that would answer the run', () => {
    const open = { interruptId: 'i', interruptToken: 'tok-1', callbackUrl: '/v1/interrupts/tok-1' };
    const bundle = bundleOf([{ deep: [{ 'sk-canary-name': 'x' }, 'Bearer canary-two'] }], {
      variables: { a: 'sk-canary-three' },
      error: { code: 'x', message: 'said ghp_canary4' },
      interrupt: open,
      interrupts: [open],
    });
    expect(JSON.stringify(bundle)).not.toMatch(/canary|tok-1/);
    expect(bundle['run']).toMatchObject({ interrupt: { interruptId: 'i' } });
  });

  it('is cut at its cap, counts what is left, and says why', () => {
    const bundle = bundleOf(Array.from({ length: 100 }, () => ({ text: 'ä'.repeat(100_000) })));
    expect(Buffer.byteLength(JSON.stringify(bundle))).toBeLessThanOrEqual(MAX_BUNDLE_BYTES);
    expect(Buffer.byteLength(JSON.stringify(bundle))).toBeGreaterThan(MAX_BUNDLE_BYTES - 500_000);
    expect(bundle).toMatchObject({ truncated: true, truncatedReason: 'events_truncated_to_size_cap' });
    expect(bundle.metrics.eventCount).toBe(bundle.events.length);
    expect(bundle.events[0]).toMatchObject({ sequence: 0 });
  });

  it('says so too when the log was too long to be read', () => {
    expect(bundleOf([{}], {}, true)).toMatchObject({ truncated: true, metrics: { eventCount: 1 } });
  });
});
