import { createPublicKey, verify } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { authz, type Output } from '@isthmus/protocol';
import { AuditSealer } from './audit-sealer.js';
import { Host } from './authz-host.suite.js';

let host: Host;
let admin: ReturnType<Host['pool']>;
beforeAll(async () => {
  host = await Host.start();
  await host.boot();
  admin = host.pool(host.database.adminUrl);
});
afterAll(() => host.stop());

const as = async (key: string) => (await host.bus.call(authz.authenticate, { credential: { type: 'bearer', token: key } })).token;
const verifyAs = async (key: string, range: { fromSeq?: number; toSeq?: number } = {}): Promise<Output<typeof authz.verifyAudit>> =>
  host.bus.call(authz.verifyAudit, range, { passport: await as(key) });
const record = (tenant: string, count: number, at = host.clock.date().toISOString()) =>
  host.bus.call(authz.recordAudit, {
    entries: Array.from({ length: count }, (_, number) => ({ tenant, type: 'test', at, facts: { number } })),
  });
const checkpointsOf = async (tenant: string): Promise<number[]> =>
  (await admin.query('select at_seq from authz.audit_checkpoints where tenant = $1 order by at_seq', [tenant])).rows.map(({ at_seq }) =>
    Number(at_seq),
  );
const headOf = async (tenant: string) =>
  Number((await admin.query('select max(seq) from authz.audit where tenant = $1', [tenant])).rows[0].max);

/** As somebody who owns the database: triggers off, undone at the end. */
async function tampered(sql: string, check: () => Promise<void>): Promise<void> {
  await admin.query('create table if not exists public.kept as select * from authz.audit where false');
  await admin.query('insert into public.kept select * from authz.audit');
  await admin.query('create table if not exists public.kept_checkpoints as select * from authz.audit_checkpoints');
  const withoutTriggers = async (...statements: string[]) => {
    const client = await admin.connect();
    await client.query('set session_replication_role = replica');
    for (const statement of statements) await client.query(statement);
    await client.query('set session_replication_role = origin');
    client.release();
  };
  await withoutTriggers(sql);
  try {
    await check();
  } finally {
    await withoutTriggers(
      'delete from authz.audit',
      'insert into authz.audit select * from public.kept',
      'delete from authz.audit_checkpoints',
      'insert into authz.audit_checkpoints select * from public.kept_checkpoints',
    );
    await admin.query('drop table public.kept, public.kept_checkpoints');
  }
}

describe('sealing', () => {
  it('happens to what has waited, once, however many replicas sweep', async () => {
    await record('globex', 3);
    const sealer = host.get(AuditSealer);
    await sealer.sweep();
    expect(await checkpointsOf('globex')).toEqual([]);
    host.clock.advance(61_000);
    await Promise.all([sealer.sweep(), sealer.sweep(), sealer.sweep()]);
    const head = await headOf('globex');
    expect(await checkpointsOf('globex')).toEqual([head]);
    await sealer.sweep();
    expect(await checkpointsOf('globex')).toEqual([head]);
    expect(host.lines.join('\n')).toContain('audit checkpoint');
  });

  it('never leaves more than a thousand entries between two checkpoints, and does not wait for time then', async () => {
    const before = (await checkpointsOf('globex')).at(-1) ?? 0;
    for (let part = 0; part < 5; part += 1) await record('globex', 500);
    await host.get(AuditSealer).sweep();
    const sealed = await checkpointsOf('globex');
    expect(sealed.slice(sealed.indexOf(before))).toEqual([before, before + 1_000, before + 2_000, await headOf('globex')]);
  });
});

describe('verifying', () => {
  it('seals what there is, and every signature is that of the key which discovery names', async () => {
    await record('acme', 5);
    const verdict = await verifyAs(host.keys.primary, { fromSeq: 0, toSeq: 1_000_000 });
    expect(verdict).toMatchObject({ fromSeq: 0, toSeq: 1_000_000, chainValid: true, checkpointsValid: true, anomalies: [] });
    expect(verdict.checkpoints.at(-1)?.atSequence).toBe(await headOf('acme'));
    const { discovery } = await host.bus.call(authz.describe, {});
    const { auditLogIntegrity: advertised, profiles } = discovery['auth'] as {
      auditLogIntegrity: Record<string, string>;
      profiles: string[];
    };
    expect(advertised).toMatchObject({ hashChain: true, checkpointSignatureAlgorithm: 'ed25519', checkpointIntervalEntries: 1_000 });
    expect(profiles).toContain('openwop-audit-log-integrity');
    const key = createPublicKey({ key: Buffer.from(advertised['checkpointPublicKey'] ?? '', 'base64'), format: 'der', type: 'spki' });
    for (const { merkleRoot, signature } of verdict.checkpoints)
      expect(verify(null, Buffer.from(merkleRoot, 'hex'), key, Buffer.from(signature, 'base64'))).toBe(true);
  });

  it('signs with a key that no passport is signed with', async () => {
    const { discovery } = await host.bus.call(authz.describe, {});
    const { keys } = await host.bus.call(authz.publicKeys, {});
    expect(keys).toHaveLength(1);
    const advertised = (discovery['auth'] as { auditLogIntegrity: { checkpointPublicKey: string } }).auditLogIntegrity.checkpointPublicKey;
    const { x } = createPublicKey({ key: Buffer.from(advertised, 'base64'), format: 'der', type: 'spki' }).export({ format: 'jwk' });
    expect(keys.map((key) => key['x'])).not.toContain(x);
  });

  it('answers of the own tenant only, and only who may read the audit log', async () => {
    const mine = await verifyAs(host.keys.primary);
    const theirs = await verifyAs(host.keys.other);
    const ids = new Set(mine.checkpoints.map(({ checkpoint }) => checkpoint));
    expect(theirs.checkpoints.filter(({ checkpoint }) => ids.has(checkpoint))).toEqual([]);
    await expect(verifyAs(host.keys.low)).rejects.toMatchObject({ code: 'forbidden' });
  });

  it('takes a part of the chain, echoes what was asked, and refuses a range that ends before it begins', async () => {
    const head = await headOf('globex');
    expect(await verifyAs(host.keys.other, { fromSeq: 1_500, toSeq: 1_600 })).toEqual({
      fromSeq: 1_500,
      toSeq: 1_600,
      chainValid: true,
      checkpointsValid: true,
      checkpoints: [],
      anomalies: [],
    });
    expect(await verifyAs(host.keys.other, { fromSeq: 1_500 })).toMatchObject({ toSeq: head, chainValid: true });
    expect(await verifyAs(host.keys.other, { fromSeq: head + 10 })).toMatchObject({ chainValid: true, checkpoints: [], anomalies: [] });
    await expect(verifyAs(host.keys.other, { fromSeq: 2, toSeq: 1 })).rejects.toMatchObject({ code: 'validation_error' });
  });

  it.each([
    ['an entry was changed', `update authz.audit set facts = '{"number":99}' where tenant = 'globex' and seq = 40`, [41]],
    ['an entry is gone', `delete from authz.audit where tenant = 'globex' and seq = 40`, [41]],
    ['the beginning is gone', `delete from authz.audit where tenant = 'globex' and seq < 3`, [3]],
    ['another time was written', `update authz.audit set at = now() where tenant = 'globex' and seq = 7`, [8]],
  ])('notices that %s', async (_, sql, at) => {
    await tampered(sql, async () => {
      const verdict = await verifyAs(host.keys.other);
      expect(verdict).toMatchObject({ chainValid: false, checkpointsValid: false });
      expect(verdict.anomalies.map(({ atSeq }) => atSeq)).toEqual(at);
      for (const { expectedPrevHash } of verdict.anomalies) expect(expectedPrevHash).toMatch(/^[0-9a-f]{64}$/);
    });
    expect((await verifyAs(host.keys.other)).chainValid).toBe(true);
  });

  it('notices a missing end that was sealed', async () => {
    const head = await headOf('globex');
    await tampered(`delete from authz.audit where tenant = 'globex' and seq > ${head - 5}`, async () => {
      const verdict = await verifyAs(host.keys.other);
      expect(verdict).toMatchObject({ chainValid: false, checkpointsValid: false, anomalies: [{ atSeq: head - 4, actualPrevHash: '' }] });
    });
  });

  it.each([
    ['signature', `update authz.audit_checkpoints set signature = 'AAAA' where tenant = 'globex'`],
    ['root', `update authz.audit_checkpoints set merkle_root = repeat('0', 64) where tenant = 'globex'`],
    ['place', `update authz.audit_checkpoints set at_seq = at_seq - 1 where tenant = 'globex'`],
    [
      'absence in between',
      `delete from authz.audit_checkpoints where ctid = (select ctid from authz.audit_checkpoints where tenant = 'globex' order by at_seq limit 1)`,
    ],
  ])('notices a forged checkpoint by its %s, while the chain itself is whole', async (_, sql) => {
    await tampered(sql, async () => {
      expect(await verifyAs(host.keys.other)).toMatchObject({ chainValid: false, checkpointsValid: false, anomalies: [] });
    });
  });

  it('never signs what was changed before it was sealed', async () => {
    await record('acme', 3);
    const head = await headOf('acme');
    const sealed = await checkpointsOf('acme');
    await tampered(`update authz.audit set type = 'forged' where tenant = 'acme' and seq = ${head - 1}`, async () => {
      expect((await verifyAs(host.keys.primary)).chainValid).toBe(false);
      expect(await checkpointsOf('acme')).toEqual(sealed);
      expect(host.lines.join('\n')).toContain('not as it was written');
    });
  });
});
