import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '@isthmus/testing';
import { everyScope, type Host, openStream, startHost } from '../fake-host.suite.js';
import { RunWatch } from './run-watch.js';

let host: Host;
beforeAll(async () => {
  host = await startHost();
});
afterAll(() => host.close());

const eventsUrl = (runId: string, query = '', base = host.url): string => `${base}/v1/runs/${runId}/events${query}`;
const stream = (runId: string, query = '', headers: Record<string, string> = {}, key = 'primary') =>
  openStream(eventsUrl(runId, query), host.as(key, headers));
const ids = (frames: readonly { id: number }[]): number[] => frames.map(({ id }) => id);
const upTo = (length: number): number[] => Array.from({ length }, (_, at) => at);
const json = async (path: string, key = 'primary') => {
  const response = await fetch(`${host.url}${path}`, { headers: host.as(key, { accept: 'application/json' }) });
  return { status: response.status, body: (await response.json()) as Record<string, unknown>, text: '' };
};

describe('the stream of a run', () => {
  it('sends an ended run in one read and closes', async () => {
    const runId = host.makeRun();
    host.append(runId, ['node.started', 'node.completed', 'run.completed']);
    const before = host.counts.read;
    const { response, frames, ended } = await stream(runId, '?streamMode=debug');
    expect(await ended).toBe('ended');
    expect(host.counts.read - before).toBe(1);
    expect(ids(frames)).toEqual(upTo(4));
    expect(frames.map(({ event }) => event)).toEqual(['run.started', 'node.started', 'node.completed', 'run.completed']);
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-cache');
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    expect(host.app.get(RunWatch).size).toBe(0);
  });

  it('goes over from what was to what happens without a gap and without a repeat, however they race', async () => {
    const runs = Array.from({ length: 20 }, () => host.makeRun());
    const opened = runs.map(async (runId, at) => {
      for (let more = 0; more < at * 7; more += 1) host.append(runId, ['node.started']);
      const opening = stream(runId, '?streamMode=debug');
      for (let more = 0; more < 100; more += 1) {
        host.append(runId, ['node.started', 'node.completed'], { quiet: more % 3 === 1 });
        if (more % 10 === at % 10) await new Promise((resolve) => setImmediate(resolve));
      }
      host.append(runId, ['run.completed']);
      const { frames, ended } = await opening;
      expect(await ended).toBe('ended');
      expect(ids(frames)).toEqual(upTo(1 + at * 7 + 200 + 1));
      expect(frames.at(-1)?.event).toBe('run.completed');
    });
    await Promise.all(opened);
    expect(host.app.get(RunWatch).size).toBe(0);
  });

  it('shows in updates what its table says, and resumes after the last event that was seen', async () => {
    const runId = host.makeRun();
    host.append(runId, ['node.started', 'node.completed', 'node.started']);
    const first = await stream(runId);
    await until(() => first.frames.length === 2);
    expect(ids(first.frames)).toEqual([0, 2]);
    first.leave();
    await first.ended;
    host.append(runId, ['node.completed', 'run.completed']);
    const second = await stream(runId, '', { 'last-event-id': '2' });
    await second.ended;
    expect(ids(second.frames)).toEqual([4, 5]);
  });

  it('has nothing more to say after the end, and takes garbage for no place at all', async () => {
    const runId = host.makeRun();
    host.append(runId, ['run.completed']);
    const after = await stream(runId, '', { 'last-event-id': '1' });
    expect([after.response.status, await after.ended, after.frames]).toEqual([200, 'ended', []]);
    const garbage = await stream(runId, '', { 'last-event-id': 'x' });
    await garbage.ended;
    expect(ids(garbage.frames)).toEqual([0, 1]);
  });

  it('reads once for fifty clients', async () => {
    const runId = host.makeRun();
    const clients = await Promise.all(Array.from({ length: 50 }, () => stream(runId)));
    expect(host.app.get(RunWatch).size).toBe(1);
    await until(() => clients.every(({ frames }) => frames.length === 1));
    const before = host.counts.read;
    host.append(runId, ['node.completed']);
    await until(() => clients.every(({ frames }) => frames.length === 2));
    host.append(runId, ['run.completed']);
    await Promise.all(clients.map(({ ended }) => ended));
    for (const { frames } of clients) expect(ids(frames)).toEqual([0, 1, 2]);
    expect(host.counts.read - before).toBe(2);
    expect(host.app.get(RunWatch).size).toBe(0);
  });

  it('is healed by the heads when a bell is lost', async () => {
    const gateway = await host.gateway({ WATCH_POLL_MS: '50' });
    try {
      const runId = host.makeRun();
      const { frames, ended } = await openStream(eventsUrl(runId, '', gateway.url), host.as('primary'));
      await until(() => frames.length === 1);
      host.append(runId, ['node.completed'], { quiet: true });
      await until(() => frames.length === 2);
      host.append(runId, ['run.completed'], { quiet: true });
      expect(await ended).toBe('ended');
    } finally {
      await gateway.app.close();
    }
  });

  it('forgets a client that leaves', async () => {
    const runId = host.makeRun();
    const { leave, ended, frames } = await stream(runId);
    await until(() => frames.length === 1);
    leave();
    await ended;
    await until(() => host.app.get(RunWatch).size === 0);
  });

  it('is an HTTP error for who may not read the run, before anything is sent', async () => {
    const runId = host.makeRun();
    const { response } = await stream(runId, '', {}, 'tenant-b');
    expect(response.status).toBe(404);
    expect(await response.json()).toEqual({ error: 'not_found', message: expect.any(String) });
    expect(host.app.get(RunWatch).size).toBe(0);
  });

  it('is not disturbed by a stranger who asks for the same run at the same time', async () => {
    const runId = host.makeRun();
    const strangers = Array.from({ length: 10 }, () => stream(runId, '', {}, 'tenant-b'));
    const { frames, ended } = await stream(runId);
    await Promise.all(strangers);
    host.append(runId, ['run.completed']);
    expect(await ended).toBe('ended');
    expect(ids(frames)).toEqual([0, 1]);
  });

  it('sends the state after each change in values, without tokens, and ends with the last one', async () => {
    const runId = host.makeRun();
    const { frames, ended } = await stream(runId, '?streamMode=values');
    await until(() => frames.length === 1);
    host.variables(runId)['seen'] = 1;
    host.suspend(runId, 'a-token-of-someone');
    await until(() => frames.length === 2);
    host.append(runId, ['run.completed']);
    expect(await ended).toBe('ended');
    expect(frames.map(({ event, id }) => [event, id])).toEqual([
      ['state.snapshot', 0],
      ['state.snapshot', 1],
      ['state.snapshot', 2],
    ]);
    expect(frames[1]?.data).toMatchObject({ runId, atSeq: 1, status: 'waiting-external', variables: { seen: 1 } });
    expect(frames[1]?.data).toMatchObject({ interrupt: { kind: 'external-event' } });
    expect(JSON.stringify(frames)).not.toContain('a-token-of-someone');
    const again = await stream(runId, '?streamMode=values', { 'last-event-id': '2' });
    await again.ended;
    expect(again.frames.map(({ id, data }) => [id, (data as unknown as { status: string }).status])).toEqual([[2, 'completed']]);
    expect((await json(`/v1/runs/${runId}/events?streamMode=values`)).body['events']).toEqual([
      expect.objectContaining({ type: 'state.snapshot', sequence: 2, status: 'completed' }),
    ]);
  });

  it('is open, empty and ended with the run in messages, and unites modes', async () => {
    const runId = host.makeRun();
    const messages = await stream(runId, '?streamMode=messages');
    const mixed = await stream(runId, '?streamMode=messages,%20updates');
    host.append(runId, ['node.started', 'run.completed']);
    expect([await messages.ended, messages.frames]).toEqual(['ended', []]);
    await mixed.ended;
    expect(ids(mixed.frames)).toEqual([0, 2]);
  });

  it('gathers events for as long as was asked, and not a moment longer than a run lives', async () => {
    const runId = host.makeRun();
    const at = performance.now();
    const { frames, ended } = await stream(runId, '?streamMode=debug&bufferMs=5000');
    await until(() => host.app.get(RunWatch).size === 1);
    host.append(runId, ['node.started', 'node.completed', 'run.completed']);
    expect(await ended).toBe('ended');
    expect(performance.now() - at).toBeLessThan(2_500);
    expect(new Set(frames.map(({ event }) => event))).toEqual(new Set(['batch']));
    expect(frames.flatMap(({ data }) => data as unknown as { sequence: number }[]).map(({ sequence }) => sequence)).toEqual(upTo(4));
    expect(frames.at(-1)?.id).toBe(3);
    const single = await stream(runId, '?bufferMs=0');
    await single.ended;
    expect(single.frames.map(({ event }) => event)).toEqual(['run.started', 'node.completed', 'run.completed']);
  });

  it.each(['5001', '99999', '1.5', '-1', '', 'x'])('refuses to gather for %j milliseconds, in either format', async (bufferMs) => {
    const runId = host.makeRun();
    for (const accept of ['text/event-stream', 'application/json']) {
      const response = await fetch(eventsUrl(runId, `?bufferMs=${bufferMs}`), { headers: host.as('primary', { accept }) });
      expect([response.status, ((await response.json()) as { error: string }).error]).toEqual([400, 'validation_error']);
    }
  });

  it.each(['values,updates', 'updates,bogus', 'nonsense'])('refuses the mode %s in either format', async (mode) => {
    const runId = host.makeRun();
    for (const accept of ['text/event-stream', 'application/json']) {
      const response = await fetch(eventsUrl(runId, `?streamMode=${mode}`), { headers: host.as('primary', { accept }) });
      expect([response.status, await response.json()]).toEqual([
        400,
        expect.objectContaining({ error: 'unsupported_stream_mode', details: { supported: ['values', 'updates', 'messages', 'debug'] } }),
      ]);
    }
  });

  it('answers JSON at once with the whole log, filtered only when a mode was asked for', async () => {
    const runId = host.makeRun();
    for (let more = 0; more < 100; more += 1) host.append(runId, ['node.started']);
    const all = await json(`/v1/runs/${runId}/events`);
    expect((all.body['events'] as { sequence: number }[]).map(({ sequence }) => sequence)).toEqual(upTo(101));
    const updates = await json(`/v1/runs/${runId}/events?streamMode=updates`);
    expect((updates.body['events'] as unknown[]).length).toBe(1);
  });

  it('answers HEAD with the head alone', async () => {
    const runId = host.makeRun();
    const response = await fetch(eventsUrl(runId), { method: 'HEAD', headers: host.as('primary') });
    expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
      '',
    ]);
  });
});

describe('rights that change', () => {
  it('end an open stream within two seconds, and go on where they are left', async () => {
    host.keys.set('gone', {
      ...(host.keys.get('tenant-b') as NonNullable<ReturnType<Host['keys']['get']>>),
      tenant: 'tenant-c',
      workspace: 'w',
    });
    const other = host.makeRun('tenant-c');
    const kept = host.makeRun('tenant-a');
    const revoked = await openStream(eventsUrl(other), host.as('gone'));
    const unaffected = await stream(kept);
    await until(() => revoked.frames.length === 1 && unaffected.frames.length === 1);
    const at = performance.now();
    host.revoke('tenant-c');
    expect(await revoked.ended).toBe('ended');
    expect(performance.now() - at).toBeLessThan(2_000);
    host.append(kept, ['run.completed']);
    await unaffected.ended;
    expect(ids(unaffected.frames)).toEqual([0, 1]);
  });

  it('keep a stream whose credential is still good', async () => {
    const runId = host.makeRun();
    const { frames, ended } = await stream(runId);
    await until(() => frames.length === 1);
    const before = host.counts.authenticate;
    host.revoke('tenant-a', everyScope);
    await until(() => host.counts.authenticate > before);
    host.append(runId, ['run.completed']);
    expect(await ended).toBe('ended');
    expect(ids(frames)).toEqual([0, 1]);
  });
});

describe('polling', () => {
  it('answers at once what there is, after the cursor', async () => {
    const runId = host.makeRun();
    host.append(runId, ['node.started', 'node.completed']);
    const { body } = await json(`/v1/runs/${runId}/events/poll?lastSequence=0`);
    expect(body).toMatchObject({ runId, isComplete: false, isTerminal: false, lastEventSeq: 2, runStatus: 'running' });
    expect((body['events'] as { sequence: number }[]).map(({ sequence }) => sequence)).toEqual([1, 2]);
    expect((await json(`/v1/runs/${runId}/events/poll?since=1`)).body).toMatchObject({
      events: [expect.objectContaining({ sequence: 2 })],
    });
  });

  it('waits for news', async () => {
    const runId = host.makeRun();
    const waiting = json(`/v1/runs/${runId}/events/poll?lastSequence=0&timeout=30`);
    await until(() => host.app.get(RunWatch).size === 1);
    host.append(runId, ['node.completed']);
    expect((await waiting).body).toMatchObject({ lastEventSeq: 1, events: [expect.objectContaining({ sequence: 1 })] });
    expect(host.app.get(RunWatch).size).toBe(0);
  });

  it('answers an empty page when nothing happens in time', async () => {
    const runId = host.makeRun();
    expect((await json(`/v1/runs/${runId}/events/poll?lastSequence=0&timeout=1`)).body).toMatchObject({
      events: [],
      lastEventSeq: 0,
      isTerminal: false,
    });
  });

  it('gives equal answers once a run has ended, and takes a cursor beyond the end', async () => {
    const runId = host.makeRun();
    host.append(runId, ['run.completed']);
    const [one, two] = await Promise.all(
      [1, 2].map(async () => (await fetch(`${host.url}/v1/runs/${runId}/events/poll`, { headers: host.as('primary') })).text()),
    );
    expect(one).toBe(two);
    expect(JSON.parse(one ?? '')).toMatchObject({ isComplete: true, isTerminal: true, lastEventSeq: 1, runStatus: 'completed' });
    expect((await json(`/v1/runs/${runId}/events/poll?lastSequence=9999999999`)).body).toMatchObject({
      events: [],
      isTerminal: true,
      lastEventSeq: 1,
    });
  });
});
