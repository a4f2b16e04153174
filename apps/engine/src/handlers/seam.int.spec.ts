import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { engine } from '@isthmus/protocol';
import { callerOf } from '@isthmus/testing';
import { EngineRig } from '../engine-rig.suite.js';

describe('a claim by a suite', () => {
  let rig: EngineRig;
  beforeAll(async () => {
    rig = await EngineRig.start(3, { OPENWOP_TEST_SEAM_ENABLED: 'true' });
    await rig.register('w', [{ id: 'node', typeId: 'core.noop' }]);
  }, 30_000);
  afterAll(() => rig?.stop());

  const effect = (runId: string) => ({ runId, nodeId: 'node', ordinal: 0, providerKey: 'seam' });

  it('is fresh for one of all who ask, whichever engines they ask, under one id', async () => {
    const runId = await rig.create('w');
    const claims = await Promise.all(Array.from({ length: 30 }, () => rig.call(engine.claimInvocation, effect(runId))));
    expect(claims.filter(({ claimed }) => claimed === 'fresh')).toHaveLength(1);
    expect(claims.filter(({ claimed }) => claimed === 'unknown')).toHaveLength(29);
    expect(new Set(claims.map(({ invocationId }) => invocationId)).size).toBe(1);
    const other = await rig.call(engine.claimInvocation, effect(await rig.create('w')));
    expect([other.claimed, other.invocationId === claims[0]?.invocationId]).toEqual(['fresh', false]);
  });

  it('is for the own runs only', async () => {
    const runId = await rig.create('w');
    for (const caller of [callerOf({ tenant: 'globex' }), callerOf({ workspace: 'another' })])
      await expect(rig.call(engine.claimInvocation, effect(runId), caller)).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('without the gate', () => {
  let rig: EngineRig;
  beforeAll(async () => {
    rig = await EngineRig.start();
    await rig.register('w', [{ id: 'node', typeId: 'core.noop' }]);
  }, 30_000);
  afterAll(() => rig?.stop());

  it('nothing is claimed', async () => {
    const runId = await rig.create('w');
    await expect(rig.call(engine.claimInvocation, { runId, nodeId: 'node', ordinal: 0, providerKey: 'seam' })).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});
