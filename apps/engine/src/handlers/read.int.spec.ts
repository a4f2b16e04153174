import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { engine, type Output, type RunEvent } from '@isthmus/protocol';
import { until } from '@isthmus/testing';
import { EngineRig } from '../engine-rig.suite.js';

/** What a message between services may hold; NATS refuses more than twice as much. */
const BUDGET = 512 * 1024;

let rig: EngineRig;
beforeAll(async () => {
  rig = await EngineRig.start();
}, 30_000);
afterAll(() => rig?.stop());

async function pages(runId: string): Promise<Output<typeof engine.readRun>[]> {
  const read: Output<typeof engine.readRun>[] = [];
  for (let from = 0, more = true; more; ) {
    const page = await rig.call(engine.readRun, { runId, fromSequence: from });
    read.push(page);
    from = (page.events?.at(-1)?.sequence ?? 0) + 1;
    more = page.more;
  }
  return read;
}

describe('the pages of a log', () => {
  it.each([
    ['ASCII', 'x'],
    ['three bytes a letter', '語'],
  ])(
    'stay within the budget in bytes, of %s, and leave nothing out',
    async (_which, letter) => {
      const ids = Array.from({ length: 60 }, (_, index) => `n${index}`);
      const nodes = ids.map((id) => ({ id, typeId: 'core.identity', inputs: { text: { type: 'variable', variableName: 'text' } } }));
      const edges = ids.slice(1).map((id, index) => `n${index}>${id}`);
      await rig.register('wordy', nodes, edges);
      const runId = await rig.create('wordy', { inputs: { text: letter.repeat(12_000) } });
      const { head } = await rig.ended(runId);
      const read = await pages(runId);
      for (const page of read.slice(0, -1)) expect(page.events?.length).toBeGreaterThan(0);
      for (const page of read) expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThan(BUDGET);
      const sequences = read.flatMap(({ events = [] }) => events.map(({ sequence }: RunEvent) => sequence));
      expect(sequences).toEqual(Array.from({ length: head + 1 }, (_, index) => index));
    },
    30_000,
  );
});

describe('the list of runs', () => {
  it('comes in pages that fit, however many tags the runs have, and leaves none out', async () => {
    await rig.register('tagged', [{ id: 'a', typeId: 'core.noop' }]);
    const tags = Array.from({ length: 100 }, (_, index) => `${index}`.padEnd(250, 't'));
    const made = await Promise.all(Array.from({ length: 50 }, () => rig.create('tagged', { tags })));
    const listed: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await rig.call(engine.listRuns, { workflowId: 'tagged', limit: 100, ...(cursor !== undefined && { cursor }) });
      listed.push(...page.runs.map(({ runId }) => runId));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(listed.sort()).toEqual(made.sort());
  }, 30_000);
});

describe('a run of the largest request', () => {
  const text = 'x'.repeat(380 * 1024);
  const large = { id: 'a', typeId: 'core.identity', inputs: { text: { type: 'variable', variableName: 'text' } } };

  it('can be looked at: what does not fit is shown by hash and size', async () => {
    await rig.register('large', [large]);
    const runId = await rig.create('large', { inputs: { text, n: 1 } });
    const { snapshot, events, outcome, head } = await rig.ended(runId);
    expect(snapshot).toMatchObject({ status: 'completed', variables: { n: 1, text: { length: text.length + 2 } }, inputs: { n: 1 } });
    expect(outcome).toMatchObject({ is: 'completed', outputs: { text } });
    expect(events?.length).toBeGreaterThan(0);
    expect((await pages(runId)).flatMap((page) => page.events ?? [])).toHaveLength(head + 1);
  }, 30_000);

  it('says that its outputs are too large to be given, and is created all the same', async () => {
    await rig.register('twice', [large, { ...large, id: 'b' }]);
    const created = await rig.call(engine.createRun, {
      workflowId: 'twice',
      inputs: { text },
      transport: 'mcp',
      trust: 'untrusted',
      holdMs: 2_000,
    });
    expect(created).not.toHaveProperty('settled');
    const { runId } = created;
    await until(async () => (await rig.call(engine.readRun, { runId })).status === 'completed');
    await expect(rig.call(engine.readRun, { runId, want: ['outcome'] })).rejects.toMatchObject({ code: 'payload_too_large' });
    expect((await rig.call(engine.readRun, { runId, want: ['snapshot'] })).snapshot?.outputs).toMatchObject({
      a: { length: expect.any(Number) },
    });
  }, 30_000);

  it('waits for a decision on what is as large, and takes an edit as large as a request may be', async () => {
    await rig.register('edited', [
      { id: 'gate', typeId: 'core.approvalGate', config: { actions: ['accept', 'edit-accept'] }, inputs: large.inputs },
    ]);
    const runId = await rig.create('edited', { inputs: { text } });
    const waiting = await rig.settled(runId);
    expect(waiting.snapshot).toMatchObject({ status: 'waiting-approval', interrupt: { nodeId: 'gate' } });
    await rig.call(engine.resolveInterrupt, {
      runId,
      at: { nodeId: 'gate' },
      resumeValue: { action: 'edit-accept', editedArtifactData: text },
    });
    expect((await rig.ended(runId)).status).toBe('completed');
    expect((await pages(runId)).flatMap((page) => page.events ?? []).map(({ type }) => type)).toContain('approval.received');
  }, 30_000);
});
