import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { authz, type JsonObject } from '@isthmus/protocol';
import { type SealedEntry, verifyChain } from './audit-chain.js';
import { Host } from './authz-host.suite.js';

let host: Host;
let admin: ReturnType<Host['pool']>;
beforeAll(async () => {
  host = await Host.start();
  await host.boot(); // two writers that know nothing of each other
  admin = host.pool(host.database.adminUrl);
});
afterAll(() => host.stop());

const at = '2026-07-28T12:00:00.000Z';
const record = (entries: { tenant?: string; type: string; at: string; facts: JsonObject }[]) =>
  host.bus.call(authz.recordAudit, { entries });

async function chainOf(tenant: string | null): Promise<SealedEntry[]> {
  const { rows } = await admin.query('select * from authz.audit where tenant is not distinct from $1 order by seq', [tenant]);
  return rows.map((row) => ({
    seq: Number(row.seq),
    ...(row.tenant !== null && { tenant: row.tenant }),
    at: row.at.toISOString(),
    type: row.type,
    facts: row.facts,
    prevHash: row.prev_hash,
    hash: row.hash,
  }));
}

describe('recording', () => {
  it('keeps each chain unbroken while two replicas append at once', async () => {
    const burst = Array.from({ length: 60 }, (_, number) =>
      record([
        { tenant: 'acme', type: 'test.acme', at, facts: { number } },
        { tenant: 'globex', type: 'test.globex', at, facts: { number } },
        { type: 'test.host', at, facts: { number } },
      ]),
    );
    expect(await Promise.all(burst)).toEqual(burst.map(() => ({ recorded: 3 })));
    for (const [tenant, type] of [
      ['acme', 'test.acme'],
      ['globex', 'test.globex'],
      [null, 'test.host'],
    ] as const) {
      const chain = await chainOf(tenant);
      expect(verifyChain(chain)).toEqual({ chainValid: true, anomalies: [] });
      expect(chain.map(({ seq }) => seq)).toEqual(chain.map((_, index) => index));
      const mine = chain.filter((entry) => entry.type === type).map((entry) => entry.facts['number'] as number);
      expect(mine.sort((a, b) => a - b)).toEqual(burst.map((_, number) => number));
    }
  });

  it('keeps the order of one report', async () => {
    await record([1, 2, 3, 4, 5].map((number) => ({ tenant: 'acme', type: 'test.order', at, facts: { number } })));
    const chain = await chainOf('acme');
    expect(chain.slice(-5).map(({ facts }) => facts['number'])).toEqual([1, 2, 3, 4, 5]);
  });

  it('shows a row that was changed behind its back', async () => {
    const client = await admin.connect();
    try {
      await client.query('begin');
      await client.query('alter table authz.audit disable trigger audit_append_only');
      await client.query(`update authz.audit set facts = '{"number":99}' where chain = 'tenant:acme' and seq = 3`);
      const { rows } = await client.query(`select * from authz.audit where chain = 'tenant:acme' order by seq`);
      const chain = rows.map((row) => ({
        seq: Number(row.seq),
        tenant: row.tenant,
        at: row.at.toISOString(),
        type: row.type,
        facts: row.facts,
        prevHash: row.prev_hash,
        hash: row.hash,
      }));
      expect(verifyChain(chain).anomalies.map(({ atSeq }) => atSeq)).toEqual([4]);
    } finally {
      await client.query('rollback');
      client.release();
    }
  });

  it('keeps what it can of facts that storage refuses, so that no one hides a denial behind odd bytes', async () => {
    await record([
      {
        tenant: 'acme',
        type: 'authorization.decided',
        at: 'not a time',
        facts: {
          principal: 'user-low',
          action: 'runs:create',
          resource: 'run:\u0000',
          half: '\ud800',
          ['\u0000']: 1,
          allowed: false,
          big: 1e300,
          tiny: 5e-324,
        },
      },
    ]);
    const chain = await chainOf('acme');
    expect(chain.at(-1)).toMatchObject({
      at: host.clock.date().toISOString(),
      facts: {
        principal: 'user-low',
        action: 'runs:create',
        resource: 'left out: it cannot be stored',
        half: 'left out: it cannot be stored',
        allowed: false,
        big: 1e300,
        tiny: 5e-324,
      },
    });
    expect(verifyChain(chain).chainValid).toBe(true);
  });
});
