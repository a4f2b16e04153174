import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ToolReply } from '@isthmus/protocol';
import { Invocations, type Outcome } from './invocations.js';
import { at, LogRig } from './log-rig.suite.js';

let rig: LogRig;
let invocations: Invocations;
let runId: string;
beforeAll(async () => {
  rig = await LogRig.start();
  invocations = new Invocations(rig.pool);
  runId = await rig.create();
}, 30_000);
afterAll(() => rig?.stop());

const round = (invocationId: string, number = 0, tenant = 'a', epoch = 1) => ({
  tenant,
  runId,
  nodeId: 'n',
  invocationId,
  attempt: 0,
  round: number,
  epoch,
});
const said = (text: string): Outcome => ({
  is: 'reply',
  reply: { is: 'complete', result: { text }, isError: false, negotiatedVersion: '2026-07-28' } as ToolReply,
});
const refused: Outcome = { is: 'error', error: { error: 'mcp_tool_not_found', message: 'No.', details: { a: 1 } } };

describe('one round of a call to the outside', () => {
  it('is fresh to the first who claims it, and of unknown outcome to whoever comes later', async () => {
    expect(await invocations.claim(round('i1'), at(0))).toEqual({ is: 'fresh' });
    expect(await invocations.claim(round('i1', 0, 'a', 2), at(1))).toEqual({ is: 'unknown' });
    expect(await invocations.claim(round('i1', 1), at(2))).toEqual({ is: 'fresh' });
  });

  it('is fresh to one of many who claim it at once', async () => {
    const claims = await Promise.all(Array.from({ length: 10 }, (_, epoch) => invocations.claim(round('i2', 0, 'a', epoch), at(0))));
    expect(claims.filter(({ is }) => is === 'fresh')).toHaveLength(1);
  });

  it.each([
    ['a reply', said('hello')],
    ['a refusal', refused],
  ])('gives %s back to whoever enters again', async (what, outcome) => {
    await invocations.claim(round(what), at(0));
    await invocations.record(round(what), outcome, at(1));
    expect(await invocations.claim(round(what, 0, 'a', 2), at(2))).toEqual({ is: 'done', outcome });
  });

  it('has the first outcome that is recorded, and a later one is answered with it', async () => {
    await invocations.claim(round('i3'), at(0));
    expect(await invocations.record(round('i3'), said('first'), at(1))).toEqual(said('first'));
    expect(await invocations.record(round('i3', 0, 'a', 2), said('second'), at(2))).toEqual(said('first'));
    expect(await invocations.record(round('i3', 0, 'a', 2), refused, at(2))).toEqual(said('first'));
    expect(await invocations.claim(round('i3', 0, 'a', 3), at(3))).toEqual({ is: 'done', outcome: said('first') });
  });

  it('of another tenant tells nothing', async () => {
    await invocations.claim(round('i4'), at(0));
    await invocations.record(round('i4'), said('secret'), at(1));
    expect(await invocations.claim(round('i4', 0, 'b'), at(2))).toEqual({ is: 'unknown' });
  });
});
