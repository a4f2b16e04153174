import { describe, expect, it } from '@jest/globals';
import { Inflight } from './inflight.js';

describe('work in flight', () => {
  it('starts nothing new when there is no room, and does again when there is', async () => {
    const inflight = new Inflight({ MAX_INFLIGHT: 2 });
    const leave = [inflight.hold(), inflight.hold()];
    await expect(inflight.during(async () => 1)).rejects.toMatchObject({ code: 'service_unavailable', details: { retryAfter: 1 } });
    leave[0]?.();
    expect(await inflight.during(async () => inflight.held)).toBe(2);
    expect(inflight.held).toBe(1);
  });

  it('always lets in who watches', () => {
    const inflight = new Inflight({ MAX_INFLIGHT: 1 });
    inflight.hold();
    inflight.hold();
    expect(inflight.held).toBe(2);
  });

  it('gives a place back once, and also when the work fails', async () => {
    const inflight = new Inflight({ MAX_INFLIGHT: 2 });
    const leave = inflight.hold();
    leave();
    leave();
    await expect(
      inflight.during(async () => {
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(inflight.held).toBe(0);
  });
});
