import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { at, LogRig } from './log-rig.suite.js';
import type { Claim } from './run-log.js';

let rig: LogRig;
beforeAll(async () => {
  rig = await LogRig.start();
}, 30_000);
beforeEach(() => rig.admin.query('truncate engine.runs cascade'));
afterAll(() => rig?.stop());

/** Runs of a tenant whose leases ended or whose timers are due, a millisecond apart; the longest due was written last. */
async function due(tenant: string, count: number, lease: string | null = null): Promise<void> {
  await rig.admin.query(
    `insert into engine.runs (run_id, tenant, workspace, principal, workflow_id, revision, status, head, epoch, lease_owner, due_at, transport, trust, options, started_at)
     select gen_random_uuid(), $1, 'ws', 'p', 'w', 1, 'running', 0, 1, $3, $4::timestamptz + ($2 + 1 - n) * interval '1 ms', 'rest', 'trusted', '{}', $4
     from generate_series(1, $2) n`,
    [tenant, count, lease, at(-10_000)],
  );
}
const claimDue = (after = '', { tenants = 200, perTenant = 20, owner = 'engine-1', now = at(0) } = {}) =>
  rig.log.claimDue(owner, now, at(6_000), after, tenants, perTenant);
const perTenant = (claims: readonly Claim[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { tenant } of claims) counts[tenant] = (counts[tenant] ?? 0) + 1;
  return counts;
};

describe('claiming one run', () => {
  it('takes a lease that is free or has ended, with the next epoch', async () => {
    const runId = await rig.create();
    expect(await rig.log.claim('engine-2', runId, at(6_000), at(12_000))).toEqual({ tenant: 'a', runId, epoch: 2, takeovers: 1 });
    expect(await rig.row(runId)).toMatchObject({ epoch: 2, lease_owner: 'engine-2', due_at: at(12_000) });
    await rig.log.release('a', runId, 2, 0, at(60_000));
    expect(await rig.log.claim('engine-3', runId, at(6_001), at(12_000))).toMatchObject({ epoch: 3, takeovers: 0 });
  });

  it('takes no lease that is held, no run that nobody has to look at, and none that has ended', async () => {
    const held = await rig.create();
    expect(await rig.log.claim('engine-2', held, at(5_999), at(12_000))).toBeUndefined();
    expect(await rig.row(held)).toMatchObject({ epoch: 1, lease_owner: 'engine-1' });
    const idle = await rig.create();
    await rig.log.release('a', idle, 1, 0, null);
    const ended = await rig.create();
    await rig.end(ended);
    for (const runId of [idle, ended]) expect(await rig.log.claim('engine-2', runId, at(60_000), at(66_000))).toBeUndefined();
  });

  it('gives it to one of many', async () => {
    const runId = await rig.create();
    const claims = await Promise.all(
      Array.from({ length: 10 }, (_, index) => rig.log.claim(`engine-${index}`, runId, at(7_000), at(13_000))),
    );
    expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1);
  });
});

describe('takeovers', () => {
  it('are counted while the log does not grow, and begin again when it does', async () => {
    const runId = await rig.create();
    let now = 0;
    const takeOver = async () => {
      now += 10_000;
      const claim = await rig.log.claim('engine', runId, at(now), at(now + 6_000));
      return claim?.takeovers;
    };
    expect([await takeOver(), await takeOver(), await takeOver()]).toEqual([1, 2, 3]);
    await rig.append(runId, { epoch: 4, owner: 'engine', due: at(now + 6_000) });
    expect([await takeOver(), await takeOver()]).toEqual([1, 2]);
  });

  it('are none when the lease was given back', async () => {
    const runId = await rig.create();
    await rig.log.claim('engine', runId, at(10_000), at(16_000));
    await rig.log.release('a', runId, 2, 0, at(20_000));
    expect(await rig.log.claim('engine', runId, at(20_000), at(26_000))).toMatchObject({ takeovers: 0 });
  });

  it('count the same when they are found by the sweep', async () => {
    const runId = await rig.create();
    for (const takeovers of [1, 2, 3]) {
      const { claims } = await claimDue('', { now: at(takeovers * 10_000) });
      expect(claims).toEqual([{ tenant: 'a', runId, epoch: takeovers + 1, takeovers }]);
      await rig.admin.query('update engine.runs set due_at = $1', [at(takeovers * 10_000 + 1)]);
    }
  });
});

describe('claiming what is due', () => {
  it('takes leases that ended and timers that are due, and nothing else', async () => {
    await due('t1', 1, 'engine-9');
    await due('t2', 1);
    const held = await rig.create();
    const waiting = await rig.create();
    await rig.log.release('a', waiting, 1, 0, null);
    const { claims } = await claimDue();
    expect(claims.map(({ tenant, epoch, takeovers }) => [tenant, epoch, takeovers]).sort()).toEqual([
      ['t1', 2, 1],
      ['t2', 2, 0],
    ]);
    expect((await rig.row(held)).epoch).toBe(1);
    expect((await claimDue()).claims).toEqual([]);
  });

  it('takes the longest due first', async () => {
    await due('t', 30);
    const { claims } = await claimDue('', { perTenant: 5 });
    const { rows } = await rig.admin.query<{ run_id: string }>('select run_id from engine.runs where epoch = 2');
    const { rows: oldest } = await rig.admin.query<{ left: number }>(
      "select count(*)::int as left from engine.runs where epoch = 1 and due_at < (select min(due_at) from engine.runs where epoch = 1) + interval '1 ms'",
    );
    expect(rows.map(({ run_id }) => run_id).sort()).toEqual(claims.map(({ runId }) => runId).sort());
    const { rows: order } = await rig.admin.query<{ first: Date }>('select min(due_at) as first from engine.runs where epoch = 1');
    expect(order[0]?.first).toEqual(at(-10_000 + 6));
    expect(oldest[0]?.left).toBe(1);
  });

  it('is fair: a tenant with 1,000 due runs keeps none of 50 others waiting', async () => {
    await due('t00-greedy', 1_000);
    for (let other = 1; other <= 50; other += 1) await due(`t${String(other).padStart(2, '0')}`, 1);
    const { claims } = await claimDue();
    expect(perTenant(claims)['t00-greedy']).toBe(20);
    expect(Object.keys(perTenant(claims))).toHaveLength(51);
  });

  it('is fair also when a call looks at a few tenants only: everyone had a turn when the cursor is back', async () => {
    await due('t00-greedy', 1_000);
    for (let other = 1; other <= 50; other += 1) await due(`t${String(other).padStart(2, '0')}`, 1);
    const seen = new Map<string, number>();
    let calls = 0;
    let cursor = '';
    do {
      const claimed = await claimDue(cursor, { tenants: 10 });
      for (const [tenant, count] of Object.entries(perTenant(claimed.claims))) seen.set(tenant, (seen.get(tenant) ?? 0) + count);
      cursor = claimed.cursor;
      calls += 1;
    } while (cursor !== '');
    expect(calls).toBe(Math.ceil(51 / 10));
    expect(seen.size).toBe(51);
    expect(seen.get('t00-greedy')).toBe(20);
    // The cursor went around: the next call begins at the first tenant again.
    expect(perTenant((await claimDue(cursor, { tenants: 10 })).claims)).toEqual({ 't00-greedy': 20 });
  });

  it('does not wait for another claimer, and takes what the other one does not', async () => {
    await due('t', 30);
    const other = await rig.pool.connect();
    try {
      await other.query('begin');
      const { rows: theirs } = await other.query<{ run: string }>('select run from engine.claim_due($1,$2,$3,$4,$5,$6)', [
        'engine-2',
        at(0),
        at(6_000),
        '',
        200,
        20,
      ]);
      const { claims: ours } = await claimDue();
      expect(theirs).toHaveLength(20);
      expect(ours).toHaveLength(10);
      expect(ours.filter(({ runId }) => theirs.some(({ run }) => run === runId))).toEqual([]);
    } finally {
      await other.query('rollback');
      other.release();
    }
    expect((await claimDue()).claims).toHaveLength(20);
  });

  it('gives every run to one claimer, however many claim', async () => {
    for (let tenant = 0; tenant < 10; tenant += 1) await due(`t${tenant}`, 30);
    const all: Claim[] = [];
    for (let found = 1; found > 0; ) {
      const rounds = await Promise.all(Array.from({ length: 4 }, (_, index) => claimDue('', { owner: `engine-${index}` })));
      found = rounds.reduce((sum, { claims }) => sum + claims.length, 0);
      all.push(...rounds.flatMap(({ claims }) => claims));
    }
    expect(all).toHaveLength(300);
    expect(new Set(all.map(({ runId }) => runId)).size).toBe(300);
    expect(new Set(all.map(({ epoch }) => epoch))).toEqual(new Set([2]));
  });
});
