import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Bell, Passports } from '@isthmus/messaging';
import { ALL_SCOPES, authz, BELLS, PASSPORT, WopError } from '@isthmus/protocol';
import { testNats, until } from '@isthmus/testing';
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose';
import { administer } from './admin.js';
import { KeyActivity } from './key-activity.js';
import { mintKey, parseKey } from './keys.js';
import { Host, idOf, withWrongSecret } from './authz-host.suite.js';

let host: Host;
let admin: ReturnType<Host['pool']>;
beforeAll(async () => {
  host = await Host.start();
  admin = host.pool(host.database.adminUrl);
});
afterAll(() => host.stop());

const authenticate = (token: string) => host.bus.call(authz.authenticate, { credential: { type: 'bearer', token } });
const refusal = async (work: Promise<unknown>): Promise<WopError> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof WopError)) throw new Error(`not refused: ${String(error)}`);
  return error;
};
const auditOf = async (tenant: string | null, type: string) =>
  (
    await admin.query('select facts from authz.audit where tenant is not distinct from $1 and type = $2 order by seq', [tenant, type])
  ).rows.map(({ facts }) => facts);

describe('authenticate', () => {
  it('answers who holds a key, with a passport that the public keys verify', async () => {
    const { token, caller, expiresInMs } = await authenticate(host.keys.primary);
    expect(caller).toEqual({
      tenant: 'acme',
      workspace: 'main',
      principal: 'user-alice',
      kind: 'principal',
      scopes: [...ALL_SCOPES].sort(),
      epoch: expect.any(Number),
      credentialId: idOf(host.keys.primary),
    });
    expect(expiresInMs).toBeGreaterThan(0);
    expect(expiresInMs).toBeLessThanOrEqual(60_000);
    const keyring = createLocalJWKSet((await host.bus.call(authz.publicKeys, {})) as unknown as JSONWebKeySet);
    const { payload, protectedHeader } = await jwtVerify(token, keyring, {
      issuer: PASSPORT.issuer,
      audience: PASSPORT.audience,
      algorithms: ['EdDSA'],
      currentDate: host.clock.date(),
    });
    expect(payload['caller']).toEqual(caller);
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(60);
    expect(protectedHeader.kid).toMatch(/^[A-Za-z0-9_-]{43}$/);
  });

  it('makes passports that every service accepts', async () => {
    const { token, caller } = await authenticate(host.keys.primary);
    await expect(host.get(Passports).verify(token)).resolves.toEqual(caller);
  });

  it('gives both keys of a rotation the same principal', async () => {
    const [one, two] = await Promise.all([authenticate(host.keys.primary), authenticate(host.keys.secondary)]);
    expect({ ...two.caller, credentialId: '' }).toEqual({ ...one.caller, credentialId: '' });
    expect(two.caller.credentialId).not.toBe(one.caller.credentialId);
  });

  it('gives no scope that the principal does not hold', async () => {
    expect((await authenticate(host.keys.low)).caller.scopes).toEqual(['runs:read']);
  });

  it('ignores a stored scope that this version does not know', async () => {
    await admin.query(`update authz.principals set scopes = scopes || '{root:everything}' where principal_id = 'user-low'`);
    expect((await authenticate(host.keys.low)).caller.scopes).toEqual(['runs:read']);
  });

  it('hands a passport out again for ten seconds and then signs another', async () => {
    const first = await authenticate(host.keys.primary);
    host.clock.advance(9_000);
    const again = await authenticate(host.keys.primary);
    expect(again.token).toBe(first.token);
    expect(again.expiresInMs).toBe(first.expiresInMs - 9_000);
    host.clock.advance(1_500);
    expect((await authenticate(host.keys.primary)).token).not.toBe(first.token);
  });

  it('answers a key that nobody has, a wrong secret and nonsense alike, and repeats none of them', async () => {
    const tokens = [mintKey(), withWrongSecret(host.keys.primary), 'hk_definitely_not_a_real_key_12345', '', "' or 1=1 --", '\u0000'];
    const refusals = await Promise.all(tokens.map((token) => refusal(authenticate(token))));
    for (const [index, error] of refusals.entries()) {
      expect(error.toEnvelope()).toEqual({ error: 'unauthenticated', message: 'The credential is not valid.' });
      expect(JSON.stringify(error.toEnvelope())).not.toContain(tokens[index] || 'never');
    }
  });

  it('refuses a key from the moment it expires', async () => {
    const { keys, clock } = host;
    await admin.query('update authz.api_keys set expires_at = $1 where key_id = $2', [new Date(clock.now() + 1_000), idOf(keys.low)]);
    await expect(authenticate(keys.low)).resolves.toBeDefined();
    clock.advance(1_000);
    expect(await refusal(authenticate(keys.low))).toMatchObject({ code: 'key_expired', message: 'The API key has expired.' });
    await admin.query('update authz.api_keys set expires_at = null where key_id = $1', [idOf(keys.low)]);
  });

  it('refuses the keys of a disabled principal', async () => {
    await admin.query(`update authz.principals set disabled = true where principal_id = 'user-low'`);
    expect(await refusal(authenticate(host.keys.low))).toMatchObject({ code: 'key_revoked' });
    await admin.query(`update authz.principals set disabled = false where principal_id = 'user-low'`);
  });

  it('tells only who holds a key that it was revoked', async () => {
    await admin.query('update authz.api_keys set revoked_at = now() where key_id = $1', [idOf(host.keys.low)]);
    expect(await refusal(authenticate(withWrongSecret(host.keys.low)))).toMatchObject({ code: 'unauthenticated' });
    expect(await refusal(authenticate(host.keys.low))).toMatchObject({ code: 'key_revoked' });
    await admin.query('update authz.api_keys set revoked_at = null where key_id = $1', [idOf(host.keys.low)]);
  });

  it('records the use of a key once a minute', async () => {
    const activity = host.get(KeyActivity);
    const usesOf = async () => (await auditOf('globex', 'key.used')).length;
    await Promise.all(Array.from({ length: 20 }, () => authenticate(host.keys.other)));
    await activity.settled();
    expect(await auditOf('globex', 'key.used')).toEqual([{ keyId: idOf(host.keys.other), principal: 'user-bob' }]);
    host.clock.advance(59_000);
    await authenticate(host.keys.other);
    await activity.settled();
    expect(await usesOf()).toBe(1);
    host.clock.advance(2_000);
    await authenticate(host.keys.other);
    await activity.settled();
    expect(await usesOf()).toBe(2);
    const { rows } = await admin.query('select last_used_at from authz.api_keys where key_id = $1', [idOf(host.keys.other)]);
    expect(rows[0].last_used_at).toEqual(host.clock.date());
  });

  it('records refusals, those of keys that nobody has in the chain of the host and not one by one', async () => {
    host.clock.advance(61_000);
    await Promise.all([mintKey(), mintKey(), mintKey(), withWrongSecret(host.keys.other)].map((token) => refusal(authenticate(token))));
    await host.get(KeyActivity).settled();
    expect((await auditOf(null, 'key.refused')).at(-1)).toEqual({ reason: 'unknown' });
    expect(await auditOf('globex', 'key.refused')).toEqual([
      { reason: 'secret-wrong', keyId: idOf(host.keys.other), principal: 'user-bob' },
    ]);
  });
});

describe('delegate', () => {
  const alice = { for: 'principal', tenant: 'acme', workspace: 'main', principal: 'user-alice' } as const;

  it('gives a principal the scopes it has now', async () => {
    await administer(environment(), ['set-scopes', 'acme', 'user-low', 'runs:read,runs:create']);
    const { caller } = await host.bus.call(authz.delegate, { ...alice, principal: 'user-low' });
    expect(caller).toMatchObject({ tenant: 'acme', principal: 'user-low', kind: 'principal', scopes: ['runs:create', 'runs:read'] });
    await administer(environment(), ['set-scopes', 'acme', 'user-low', 'runs:read']);
    const later = await host.bus.call(authz.delegate, { ...alice, principal: 'user-low' });
    expect(later.caller.scopes).toEqual(['runs:read']);
    expect(later.caller.epoch).toBeGreaterThan(caller.epoch);
  });

  it('gives a service the scopes it names, in a tenant and workspace that exist', async () => {
    const { caller } = await host.bus.call(authz.delegate, {
      for: 'service',
      service: 'gateway',
      tenant: 'acme',
      workspace: 'main',
      scopes: ['runs:read'],
    });
    expect(caller).toMatchObject({ principal: 'service:gateway', kind: 'service', scopes: ['runs:read'] });
  });

  it.each([
    ['a principal nobody knows', { ...alice, principal: 'user-nobody' }, 'forbidden'],
    ['a principal of another tenant', { ...alice, principal: 'user-bob' }, 'forbidden'],
    ['a workspace that is not its own', { ...alice, workspace: 'lab' }, 'workspace_membership_required'],
    ['a tenant nobody knows', { for: 'service', service: 'engine', tenant: 'nobody', workspace: 'main', scopes: [] }, 'forbidden'],
    ["another tenant's workspace", { for: 'service', service: 'engine', tenant: 'acme', workspace: 'lab', scopes: [] }, 'forbidden'],
    ['no tenant', { for: 'service', service: 'engine', tenant: '', workspace: 'main', scopes: [] }, 'forbidden'],
  ] as const)('refuses %s', async (_what, request, code) => {
    expect(await refusal(host.bus.call(authz.delegate, request as never))).toMatchObject({ code });
  });

  it('refuses a principal that was disabled', async () => {
    await admin.query(`update authz.principals set disabled = true where principal_id = 'user-alice'`);
    expect(await refusal(host.bus.call(authz.delegate, alice))).toMatchObject({ code: 'forbidden' });
    await admin.query(`update authz.principals set disabled = false where principal_id = 'user-alice'`);
  });

  it('does not take a name of a service as a principal', async () => {
    await expect(
      admin.query(`insert into authz.principals values ('acme', 'service:engine', 'main', '{}', false, now())`),
    ).rejects.toMatchObject({ constraint: 'principals_not_a_service' });
  });
});

const environment = () => ({ DATABASE_URL: host.database.serviceUrl('authz'), NATS_URL: testNats() });

describe('revocation', () => {
  it('makes the next authentication fail, rings, and is told to who asks since before', async () => {
    const before = await host.bus.call(authz.revocationsSince, {});
    expect(before.tenants).toEqual([]);
    const { caller } = await authenticate(host.keys.secondary);
    const rung: string[] = [];
    const stop = host.get(Bell).listen(BELLS.revoked.all, (subject) => void rung.push(subject));

    await expect(administer(environment(), ['revoke-key', idOf(host.keys.secondary)])).resolves.toContain('is revoked');
    expect(await refusal(authenticate(host.keys.secondary))).toMatchObject({ code: 'key_revoked', message: 'The API key was revoked.' });

    const after = await host.bus.call(authz.revocationsSince, { epoch: before.epoch });
    expect(after).toEqual({ epoch: before.epoch + 1, tenants: [{ tenant: 'acme', epoch: before.epoch + 1 }] });
    expect(await host.bus.call(authz.revocationsSince, { epoch: after.epoch })).toEqual({ epoch: after.epoch, tenants: [] });
    expect((await authenticate(host.keys.primary)).caller.epoch).toBe(after.epoch);
    expect(caller.epoch).toBeLessThan(after.epoch);
    await until(() => rung.includes(BELLS.revoked.subject('acme')), { what: 'the bell' });
    stop();
    expect(await auditOf('acme', 'key.revoked')).toEqual([{ keyId: idOf(host.keys.secondary) }]);
  });

  it('leaves other tenants alone', async () => {
    const { epoch } = await host.bus.call(authz.revocationsSince, {});
    expect((await authenticate(host.keys.other)).caller.epoch).toBeLessThan(epoch);
  });

  it('of a key that is revoked already, or of scopes that are held already, changes nothing', async () => {
    const { epoch } = await host.bus.call(authz.revocationsSince, {});
    await expect(administer(environment(), ['revoke-key', idOf(host.keys.secondary)])).resolves.toContain('before');
    await expect(administer(environment(), ['set-scopes', 'acme', 'user-low', 'runs:read'])).resolves.toContain('already');
    expect((await host.bus.call(authz.revocationsSince, {})).epoch).toBe(epoch);
  });

  it('shows epochs in order however many revoke at once', async () => {
    const { epoch } = await host.bus.call(authz.revocationsSince, {});
    const scopes = (number: number) => ALL_SCOPES.slice(0, number + 1).join(',');
    await Promise.all(
      Array.from({ length: 6 }, (_, number) => administer(environment(), ['set-scopes', 'globex', 'user-bob', scopes(number)])),
    );
    const { rows } = await admin.query('select epoch::int from authz.revocations where epoch > $1 order by epoch', [epoch]);
    expect(rows.map((row) => row.epoch)).toEqual(rows.map((_, index) => epoch + 1 + index));
    expect(rows.length).toBeGreaterThan(0);
  });

  it.each([
    [['revoke-key', 'isk_unknown'], 'There is no key of that id.'],
    [['set-scopes', 'acme', 'user-nobody', 'runs:read'], 'There is no such principal.'],
    [['constructor'], 'Usage:'],
    [[], 'Usage:'],
  ])('by hand says what is wrong with %j', async (args, sentence) => {
    await expect(administer(environment(), args)).rejects.toThrow(sentence);
  });
});

describe('replicas', () => {
  it('share the key that signs passports', async () => {
    await host.boot();
    const kids = new Set<unknown>();
    for (let call = 0; call < 20; call += 1) {
      host.clock.advance(11_000); // past the reuse of a passport
      kids.add(decodeProtectedHeader((await authenticate(host.keys.primary)).token).kid);
      const { keys } = await host.bus.call(authz.publicKeys, {});
      expect(keys).toEqual([{ kty: 'OKP', crv: 'Ed25519', x: expect.any(String), kid: [...kids][0], alg: 'EdDSA', use: 'sig' }]);
    }
    expect(kids.size).toBe(1);
  });
});

describe('what is written', () => {
  const secretsOf = ({ primary, secondary, low, other }: Host['keys']) =>
    [primary, secondary, low, other].flatMap((key) => [key, parseKey(key)?.secret ?? '']);

  it('holds no key: log lines, also when something breaks', async () => {
    await admin.query('alter function authz.key_by_id(text) rename to key_by_id_is_away');
    expect(await refusal(authenticate(host.keys.primary))).toMatchObject({ code: 'internal_error' });
    await admin.query('alter function authz.key_by_id_is_away(text) rename to key_by_id');
    expect(host.lines.join('')).toContain(authz.authenticate.subject);
    for (const secret of secretsOf(host.keys)) expect(host.lines.join('')).not.toContain(secret);
  });

  it('holds no key: any table of the database', async () => {
    const { rows: tables } = await admin.query(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`,
    );
    expect(tables.map(({ name }) => name)).toContain('authz.api_keys');
    const dump = await Promise.all(tables.map(async ({ name }) => JSON.stringify((await admin.query(`select * from ${name}`)).rows)));
    for (const secret of secretsOf(host.keys)) expect(dump.join('')).not.toContain(secret);
  });
});

describe('describe', () => {
  it('claims the rotation of keys, the integrity of the audit log, and nothing else', async () => {
    expect(await host.bus.call(authz.describe, {})).toEqual({
      service: 'authz',
      version: expect.any(String),
      discovery: {
        auth: {
          profiles: ['openwop-auth-api-key-rotation', 'openwop-audit-log-integrity'],
          rotation: { supported: true, minGraceSeconds: 0 },
          auditLogIntegrity: {
            hashChain: true,
            checkpointSignatureAlgorithm: 'ed25519',
            checkpointPublicKey: expect.stringMatching(/^MCowBQYDK2VwAyEA/),
            checkpointIntervalEntries: 1_000,
            checkpointIntervalSeconds: 300,
          },
        },
      },
    });
  });
});
