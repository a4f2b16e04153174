import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Host, startHost } from '../fake-host.suite.js';

let host: Host;
beforeAll(async () => {
  host = await startHost();
});
afterAll(() => host.close());

const get = async (path: string, key = 'primary') => {
  const response = await fetch(`${host.url}${path}`, { headers: host.as(key) });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as Record<string, unknown> };
};
const NOBODY = '0190a000-0000-7000-8000-ffffffffffff';

describe('the diff of runs', () => {
  it('is none of a run and itself, and begins where two others part, over as many pages as there are', async () => {
    const [a, b] = [host.makeRun(), host.makeRun()];
    for (let more = 0; more < 60; more += 1) for (const runId of [a, b]) host.append(runId, ['node.started', 'node.completed']);
    host.append(a, ['run.completed']);
    host.append(b, ['run.failed']);
    const same = await get(`/v1/runs/${a}:diff?against=${a}`);
    expect([same.status, same.body]).toEqual([200, { a, b: a, divergedAtSeq: null, eventDiffs: [], stateDiff: {} }]);
    const { body } = await get(`/v1/runs/${a}:diff?against=${b}`);
    expect(body).toEqual({
      a,
      b,
      divergedAtSeq: 121,
      eventDiffs: [expect.objectContaining({ seq: 121, op: 'changed' })],
      stateDiff: { status: { a: 'completed', b: 'failed' } },
    });
  });

  it('needs two runs that the asker may read', async () => {
    const runId = host.makeRun();
    const foreign = host.makeRun('tenant-b');
    expect((await get(`/v1/runs/${runId}:diff`)).status).toBe(400);
    for (const other of [NOBODY, 'does-not-exist-1', foreign]) {
      const answer = await get(`/v1/runs/${runId}:diff?against=${other}`);
      expect([answer.status, answer.body['error']]).toEqual([404, 'not_found']);
    }
    expect((await get(`/v1/runs/${foreign}:diff?against=${runId}`)).status).toBe(404);
  });
});

describe('the debug bundle', () => {
  it('holds the whole log and the run, masked, and is kept by no cache', async () => {
    const runId = host.makeRun();
    host.variables(runId)['pasted'] = 'sk-canary-0123456789';
    host.suspend(runId, 'the-token');
    for (let more = 0; more < 100; more += 1) host.append(runId, ['node.started']);
    const { status, headers, text, body } = await get(`/v1/runs/${runId}/debug-bundle`);
    const poll = await get(`/v1/runs/${runId}/events/poll`);
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(body).toMatchObject({ bundleVersion: '1.0', host: { name: 'isthmus' }, run: { runId }, metrics: { eventCount: 102 } });
    expect((body['events'] as unknown[]).length).toBe(102);
    expect((body['events'] as unknown[])[0]).toMatchObject((poll.body['events'] as object[])[0] as object);
    expect(text).not.toMatch(/canary|the-token/);
  });

  it('is not there for who may not read the run', async () => {
    expect((await get(`/v1/runs/${host.makeRun()}/debug-bundle`, 'tenant-b')).status).toBe(404);
    expect((await get('/v1/runs/openwop-conformance-no-such-run/debug-bundle')).status).toBe(404);
  });
});
