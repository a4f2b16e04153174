import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { definitionOf } from '../core/given.suite.js';
import { at, LogRig } from './log-rig.suite.js';
import { DEFAULT_MOUNT, Workflows } from './workflows.js';

let rig: LogRig;
let workflows: Workflows;
beforeAll(async () => {
  rig = await LogRig.start();
  workflows = new Workflows(rig.pool);
}, 30_000);
afterAll(() => rig?.stop());

const place = (tenant: string, workspace = 'ws') => ({ tenant, workspace });
const named = (id: string, ...nodes: Parameters<typeof definitionOf>[0][number][]) => ({
  ...definitionOf(nodes.length > 0 ? nodes : ['a']),
  id,
  name: id,
});
const exposing = (id: string, name: string) => named(id, { id: 'x', typeId: 'core.openwop.mcp.expose-tool', config: { name } });
const put = (tenant: string, definition: ReturnType<typeof named>, workspace?: string) =>
  workflows.put(place(tenant, workspace), 'p', definition, at(0));

describe('registering a workflow', () => {
  it('makes its next revision, and the ones before stay as they were', async () => {
    expect(await put('t1', named('w1', 'a'))).toMatchObject({ revision: 1, created: true, exposes: false });
    expect(await put('t1', named('w1', 'a', 'b'))).toMatchObject({ revision: 2, created: false });
    expect([...(await workflows.graph(place('t1'), 'w1', 1)).nodes.keys()]).toEqual(['a']);
    expect([...(await workflows.graph(place('t1'), 'w1', 2)).nodes.keys()]).toEqual(['a', 'b']);
    expect((await workflows.get(place('t1'), 'w1'))?.revision).toBe(2);
  });

  it('at the same moment as another gives each a revision of its own', async () => {
    const puts = await Promise.all(Array.from({ length: 8 }, () => put('t1', named('w2'))));
    expect(puts.map(({ revision }) => revision).sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(puts.filter(({ created }) => created)).toHaveLength(1);
  });

  it('belongs to its tenant and workspace', async () => {
    await put('t1', named('w3'));
    for (const elsewhere of [place('t1', 'other'), place('t2')]) {
      expect(await workflows.get(elsewhere, 'w3')).toBeUndefined();
      expect(await workflows.latest(elsewhere, 'w3')).toBeUndefined();
      await expect(workflows.graph(elsewhere, 'w3', 1)).rejects.toThrow();
    }
    expect((await workflows.list(place('t1', 'other'), '', 10)).length).toBe(0);
  });

  it('is listed by id, after where the list was left', async () => {
    for (const id of ['l3', 'l1', 'l2']) await put('t3', named(id));
    expect((await workflows.list(place('t3'), '', 2)).map(({ workflowId }) => workflowId)).toEqual(['l1', 'l2']);
    expect((await workflows.list(place('t3'), 'l2', 2)).map(({ workflowId }) => workflowId)).toEqual(['l3']);
  });
});

describe('the newest revision that is known', () => {
  it('is read again only when somebody says that there is a newer one', async () => {
    const here = new Workflows(rig.pool);
    await put('t4', named('w'));
    expect((await here.latest(place('t4'), 'w'))?.revision).toBe(1);
    await put('t4', named('w'));
    expect((await here.latest(place('t4'), 'w'))?.revision).toBe(1);
    expect((await here.latest(place('t4'), 'w', 2))?.revision).toBe(2);
    expect((await here.latest(place('t4'), 'w'))?.revision).toBe(2);
  });
});

describe('what workflows expose', () => {
  const names = async (tenant: string, workspace?: string) =>
    (await workflows.exposures(place(tenant, workspace), DEFAULT_MOUNT, undefined)).exposures?.map(({ name }) => name);

  it('is replaced with each revision, and its version moves whenever it changes', async () => {
    expect(await workflows.exposures(place('t5'), DEFAULT_MOUNT, undefined)).toEqual({ version: '0', exposures: [] });
    expect(await put('t5', exposing('w', 'one'))).toMatchObject({ exposes: true });
    const first = await workflows.exposures(place('t5'), DEFAULT_MOUNT, '0');
    expect(first).toEqual({
      version: '1',
      exposures: [{ kind: 'tool', name: 'one', workflowId: 'w', nodeId: 'x', manifest: { name: 'one' } }],
    });
    await put('t5', exposing('w', 'two'));
    expect(await names('t5')).toEqual(['two']);
    await put('t5', named('w'));
    expect(await workflows.exposures(place('t5'), DEFAULT_MOUNT, '2')).toEqual({ version: '3', exposures: [] });
    await put('t5', named('w'));
    expect((await workflows.exposures(place('t5'), DEFAULT_MOUNT, undefined)).version).toBe('3');
  });

  it('is not sent to who holds this version', async () => {
    await put('t6', exposing('w', 'one'));
    expect(await workflows.exposures(place('t6'), DEFAULT_MOUNT, '1')).toEqual({ version: '1' });
  });

  it('has one name per tenant: a second workflow with it is refused and changes nothing', async () => {
    await put('t7', exposing('w1', 'taken'));
    await expect(put('t7', exposing('w2', 'taken'))).rejects.toMatchObject({ code: 'validation_error', details: { nodeId: 'x' } });
    expect(await workflows.get(place('t7'), 'w2')).toBeUndefined();
    expect(await names('t7')).toEqual(['taken']);
    await put('t8', exposing('w1', 'taken'));
  });

  it('is seen by its own workspace', async () => {
    await put('t9', exposing('w1', 'mine'));
    expect(await names('t9', 'other')).toEqual([]);
    expect(await names('t9')).toEqual(['mine']);
  });
});
