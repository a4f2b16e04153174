import { describe, expect, it } from '@jest/globals';
import { currentCarrier, installPropagation, runInContext, withSpan } from './tracing.js';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
installPropagation();

describe('trace context without an exporter', () => {
  it('passes through unchanged, over awaits and spans', async () => {
    const seen = await runInContext({ traceparent, tracestate: 'vendor=1' }, () =>
      withSpan('outer', {}, async () => {
        await Promise.resolve();
        return withSpan('inner', {}, () => currentCarrier());
      }),
    );
    expect(seen).toEqual({ traceparent, tracestate: 'vendor=1' });
  });

  it('begins a trace of its own where none came in, the same for all within, not sampled', async () => {
    const [outer, inner] = await withSpan(
      'root',
      {},
      async () => [currentCarrier(), await withSpan('child', {}, () => currentCarrier())] as const,
    );
    expect(outer.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
    expect(inner.traceparent?.slice(3, 35)).toBe(outer.traceparent?.slice(3, 35));
    const other = await withSpan('another root', {}, () => currentCarrier());
    expect(other.traceparent?.slice(3, 35)).not.toBe(outer.traceparent?.slice(3, 35));
  });

  it('is empty outside of any trace', () => {
    expect(currentCarrier()).toEqual({});
  });

  it.each([{}, { traceparent: 'nonsense' }, { traceparent: undefined }])(
    'does not leak the surrounding trace into work that came with %j',
    async (carrier) => {
      const inner = await withSpan('surrounding', {}, () => runInContext(carrier, () => currentCarrier()));
      expect(inner).toEqual({});
    },
  );

  it('lets errors through as they are', async () => {
    const error = new Error('mine');
    await expect(withSpan('failing', {}, () => Promise.reject(error))).rejects.toBe(error);
    await expect(
      withSpan('failing', {}, () => {
        throw error;
      }),
    ).rejects.toBe(error);
  });
});
