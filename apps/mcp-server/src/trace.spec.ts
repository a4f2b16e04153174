import { beforeAll, describe, expect, it } from '@jest/globals';
import { currentCarrier, installPropagation, runInContext } from '@isthmus/chassis';
import { inTraceOf } from './trace.js';

const trace = (id: string, span: string) => `00-${id.repeat(32)}-${span.repeat(16)}-01`;
beforeAll(() => installPropagation());

describe('the trace of a request', () => {
  it('is the one its _meta names, in preference to the HTTP header', () => {
    runInContext({ traceparent: trace('a', '1') }, () => {
      expect(inTraceOf({ traceparent: trace('b', '2') }, () => currentCarrier().traceparent)).toBe(trace('b', '2'));
    });
  });
  it('keeps the nearer span where both name the same trace', () => {
    runInContext({ traceparent: trace('a', '1') }, () => {
      expect(inTraceOf({ traceparent: trace('a', '2') }, () => currentCarrier().traceparent)).toBe(trace('a', '1'));
    });
  });
  it.each([['nonsense'], [5], [''], [`00-${'a'.repeat(31)}-${'1'.repeat(16)}-01`]])('ignores %j', (traceparent) => {
    runInContext({ traceparent: trace('a', '1') }, () => {
      expect(inTraceOf({ traceparent: traceparent as string }, () => currentCarrier().traceparent)).toBe(trace('a', '1'));
    });
  });
});
