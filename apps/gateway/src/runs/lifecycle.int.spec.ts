import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Host, startHost } from '../fake-host.suite.js';

let host: Host;
beforeAll(async () => {
  host = await startHost();
});
afterAll(() => host.close());

const post = async (path: string, body?: unknown, headers: Record<string, string> = {}, key = 'primary') => {
  const response = await fetch(`${host.url}${path}`, {
    method: 'POST',
    headers: host.as(key, { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers }),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const told = JSON.parse(text) as Record<string, unknown> & { details?: Record<string, unknown> };
  return { status: response.status, replay: response.headers.get('openwop-idempotent-replay'), text, body: told };
};
const NOBODY = '0190a000-0000-7000-8000-ffffffffffff';

describe('cancel', () => {
  it('works with or without a body, and says so when the run had ended before', async () => {
    const runId = host.makeRun();
    const bare = await post(`/v1/runs/${runId}/cancel`);
    expect([bare.status, bare.body]).toEqual([200, { runId, status: 'cancelled' }]);
    const again = await post(`/v1/runs/${runId}/cancel`, { reason: 'enough' });
    expect(again.body).toEqual({ runId, status: 'cancelled', alreadyTerminal: true });
    expect(again.replay).toBe('false');
  });
});

describe('cancelling many', () => {
  it('has a verdict for each, in the order asked', async () => {
    const [running, done] = [host.makeRun(), host.makeRun()];
    const foreign = host.makeRun('tenant-b');
    host.append(done, ['run.completed']);
    const { status, body } = await post('/v1/runs:bulk-cancel', { runIds: [NOBODY, running, 'no-run-at-all', done, foreign, running] });
    expect(status).toBe(200);
    const missing = { ok: false, error: { error: 'not_found', message: expect.any(String) } };
    expect(body).toEqual({
      results: [
        { runId: NOBODY, ...missing },
        { runId: running, ok: true, status: 'cancelled' },
        { runId: 'no-run-at-all', ...missing },
        { runId: done, ok: false, error: { error: 'run_terminal', message: expect.any(String) } },
        { runId: foreign, ...missing },
        { runId: running, ok: true, status: 'cancelled' },
      ],
    });
  });

  it('takes a hundred runs and names that number when there are more', async () => {
    const ids = Array.from({ length: 101 }, (_, at) => `run-${at}`);
    expect((await post('/v1/runs:bulk-cancel', { runIds: ids.slice(1) })).status).toBe(200);
    const { status, body } = await post('/v1/runs:bulk-cancel', { runIds: ids });
    expect([status, body['error'], body.details]).toEqual([400, 'validation_error', { maxRunIds: 100 }]);
    expect((await post('/v1/runs:bulk-cancel', { runIds: [] })).body['error']).toBe('validation_error');
  });

  it('is one request for a key: the same answer again, another body refused', async () => {
    const runId = host.makeRun();
    const key = { 'idempotency-key': 'bulk' };
    const first = await post('/v1/runs:bulk-cancel', { runIds: [runId] }, key);
    const again = await post('/v1/runs:bulk-cancel', { runIds: [runId] }, key);
    expect([first.replay, again.replay, again.text]).toEqual(['false', 'true', first.text]);
    expect((await post('/v1/runs:bulk-cancel', { runIds: [NOBODY] }, key)).body['error']).toBe('idempotency_key_mismatch');
  });
});

describe('a pause', () => {
  it('is accepted, and so is its end; elsewhere the run tells where it stands', async () => {
    const runId = host.makeRun();
    const paused = await post(`/v1/runs/${runId}:pause`, { reason: 'lunch', drainPolicy: 'immediate' });
    expect([paused.status, paused.body]).toEqual([202, { runId, status: 'paused', pausedAt: expect.any(String) }]);
    expect(host.asked.at(-1)?.input).toMatchObject({ reason: 'lunch', drainPolicy: 'immediate' });
    const twice = await post(`/v1/runs/${runId}:pause`);
    expect([twice.status, twice.body['error'], twice.body.details]).toEqual([409, 'run_state_conflict', { runStatus: 'paused' }]);
    const resumed = await post(`/v1/runs/${runId}:resume`);
    expect([resumed.status, resumed.body]).toEqual([202, { runId, status: 'running', resumedAt: expect.any(String) }]);
    expect((await post(`/v1/runs/${runId}:resume`)).status).toBe(409);
    host.append(runId, ['run.completed']);
    const over = await post(`/v1/runs/${runId}:pause`);
    expect([over.status, over.body.details]).toEqual([409, { runStatus: 'completed' }]);
  });

  it('answers the same again for its key', async () => {
    const runId = host.makeRun();
    for (const verb of ['pause', 'resume']) {
      const first = await post(`/v1/runs/${runId}:${verb}`, undefined, { 'idempotency-key': 'k' });
      const again = await post(`/v1/runs/${runId}:${verb}`, undefined, { 'idempotency-key': 'k' });
      expect([again.status, again.text, first.replay, again.replay]).toEqual([202, first.text, 'false', 'true']);
    }
  });

  it.each(['pause', 'resume', 'fork'])('of a run that is not there, or not for this credential, is not found: %s', async (verb) => {
    const body = verb === 'fork' ? { mode: 'replay' } : undefined;
    for (const runId of [NOBODY, 'x', host.makeRun('tenant-b')]) {
      const answer = await post(`/v1/runs/${runId}:${verb}`, body);
      expect([answer.status, answer.body['error']]).toEqual([404, 'not_found']);
    }
  });
});

describe('a fork', () => {
  it('is a new run with links to it, from the beginning when it is a replay', async () => {
    const source = host.makeRun();
    const { status, body, replay } = await post(`/v1/runs/${source}:fork`, { mode: 'replay' });
    const runId = String(body['runId']);
    expect([status, replay]).toEqual([201, 'false']);
    expect(body).toEqual({
      runId,
      sourceRunId: source,
      fromSeq: 0,
      mode: 'replay',
      status: 'running',
      eventsUrl: `http://wop.test/v1/runs/${runId}/events`,
    });
    expect(runId).not.toBe(source);
  });

  it('as a branch says where it parts and may bring options of its own', async () => {
    const source = host.makeRun();
    const bare = await post(`/v1/runs/${source}:fork`, { mode: 'branch' });
    expect([bare.status, bare.body['error'], bare.body.details]).toEqual([400, 'validation_error', { path: 'fromSeq' }]);
    const { body } = await post(`/v1/runs/${source}:fork`, { mode: 'branch', fromSeq: 1, runOptionsOverlay: { tags: ['again'] } });
    expect(body).toMatchObject({ mode: 'branch', fromSeq: 1 });
    expect(host.asked.at(-1)?.input).toMatchObject({ fromSeq: 1, overlay: { tags: ['again'] } });
  });

  it.each([
    [{ mode: 'replay', fromSeq: -1 }, 400, 'validation_error'],
    [{ mode: 'replay', fromSeq: 1.5 }, 400, 'validation_error'],
    [{ mode: 'rewind' }, 400, 'validation_error'],
    [{ mode: 'branch', fromSeq: 1, runOptionsOverlay: { workflowId: 'x' } }, 400, 'validation_error'],
    [{ mode: 'branch', fromSeq: 99 }, 422, 'fork_point_invalid'],
  ])('of the shape %j is refused', async (body, status, code) => {
    const answer = await post(`/v1/runs/${host.makeRun()}:fork`, body);
    expect([answer.status, answer.body['error']]).toEqual([status, code]);
  });

  it('is made once for its key', async () => {
    const source = host.makeRun();
    const key = { 'idempotency-key': 'fork' };
    const first = await post(`/v1/runs/${source}:fork`, { mode: 'replay' }, key);
    const again = await post(`/v1/runs/${source}:fork`, { mode: 'replay' }, key);
    expect([again.status, again.text, again.replay]).toEqual([201, first.text, 'true']);
    expect((await post(`/v1/runs/${source}:fork`, { mode: 'branch', fromSeq: 1 }, key)).body['error']).toBe('idempotency_key_mismatch');
    expect((await post(`/v1/runs/${host.makeRun()}:fork`, { mode: 'replay' }, key)).body['error']).toBe('idempotency_key_mismatch');
  });
});
