import { describe, expect, it } from '@jest/globals';
import { until, watchLeaks } from '@isthmus/testing';
import { openStream, startHost } from './fake-host.suite.js';
import { RunWatch } from './runs/run-watch.js';

describe('a gateway that stops', () => {
  it('answers who is inside, ends its streams, and leaves nothing open', async () => {
    const leaks = watchLeaks();
    const host = await startHost();
    const runId = host.makeRun();
    const { frames, ended } = await openStream(`${host.url}/v1/runs/${runId}/events`, host.as('primary'));
    await until(() => frames.length === 1);
    const polling = fetch(`${host.url}/v1/runs/${runId}/events/poll?lastSequence=0&timeout=60`, {
      headers: host.as('primary', { connection: 'close' }),
    });
    await until(() => host.app.get(RunWatch).clients === 2);
    await host.close();
    expect(await ended).toBe('ended');
    const response = await polling;
    expect([response.status, await response.json()]).toEqual([200, expect.objectContaining({ events: [], runStatus: 'running' })]);
    await leaks.settled();
  });
});
