import { describe, expect, it } from '@jest/globals';
import type { Bus } from '@isthmus/messaging';
import { type Exposure, WopError } from '@isthmus/protocol';
import { callerOf } from '@isthmus/testing';
import { ExposedTools } from './exposed-tools.js';

const exposure = (name: string): Exposure => ({ kind: 'tool', name, workflowId: name, nodeId: 'n', manifest: { name } });
const asker = (mount = 'default') => ({ caller: callerOf(), passport: 'p', mount });
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The engine's list, whose answers the test lets through one by one: each says what was registered when it was asked. */
function engineOf() {
  const waiting: (() => void)[] = [];
  const state = { version: 1, names: ['a'], asked: 0, isAway: false };
  const call = async (_contract: unknown, { knownVersion }: { knownVersion?: string }): Promise<unknown> => {
    state.asked++;
    const version = String(state.version);
    const exposures = state.names.map(exposure);
    await new Promise<void>((resolve) => waiting.push(resolve));
    if (state.isAway) throw new WopError('service_unavailable', 'away');
    return { version, ...(version !== knownVersion && { exposures }) };
  };
  return { state, tools: new ExposedTools({ call } as unknown as Bus), let: () => void waiting.splice(0).map((pass) => pass()) };
}

describe('the tools of a mount', () => {
  it('are asked for once by all that wait, but never by looking before a request came', async () => {
    const { state, tools, let: pass } = engineOf();
    const early = tools.of(asker());
    state.version = 2;
    state.names = ['a', 'b'];
    const late = [tools.of(asker()), tools.of(asker()), tools.of(asker())];
    pass();
    expect((await early).tools.map(({ name }) => name)).toEqual(['a']);
    await turn();
    pass();
    for (const catalog of await Promise.all(late)) expect(catalog.tools.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(state.asked).toBe(2);
  });

  it('are kept with their version', async () => {
    const { tools, let: pass } = engineOf();
    const both = [];
    for (let again = 0; again < 2; again++) {
      const catalog = tools.of(asker());
      pass();
      both.push(await catalog);
    }
    expect(both[1]).toBe(both[0]);
  });

  it('of one mount do not wait for those of another', async () => {
    const { state, tools, let: pass } = engineOf();
    const asked = [tools.of(asker('one')), tools.of(asker('two'))];
    expect(state.asked).toBe(2);
    pass();
    await Promise.all(asked);
  });

  it('are asked for anew after the engine was away', async () => {
    const { state, tools, let: pass } = engineOf();
    state.isAway = true;
    const lost = [tools.of(asker()), tools.of(asker())];
    const outcomes = Promise.allSettled(lost);
    pass();
    await turn();
    pass();
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    state.isAway = false;
    const found = tools.of(asker());
    pass();
    expect((await found).tools).toHaveLength(1);
  });

  it('are none for who may not both start and read runs, without asking', async () => {
    const { state, tools } = engineOf();
    expect((await tools.of({ ...asker(), caller: callerOf({ scopes: ['runs:create'] }) })).tools).toEqual([]);
    expect(state.asked).toBe(0);
  });
});
