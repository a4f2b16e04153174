import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { pgPool } from '@isthmus/db';
import { type TestDatabase, testDatabase } from '@isthmus/testing';
import { mintKey } from './keys.js';
import { seedTenants } from './seed.js';
import { newKeys, specOf } from './authz-host.suite.js';

let database: TestDatabase;
let admin: ReturnType<typeof pgPool>;
beforeAll(async () => {
  database = await testDatabase();
  admin = pgPool(database.adminUrl, { max: 2, onError: () => undefined });
});
afterAll(async () => {
  await admin.end();
  await database.drop();
});

const everything = async () =>
  Object.fromEntries(
    await Promise.all(
      ['tenants', 'workspaces', 'principals', 'api_keys', 'revocations', 'audit'].map(async (table) => [
        table,
        (await admin.query(`select * from authz.${table} order by 1, 2`)).rows,
      ]),
    ),
  );

describe('the seed', () => {
  const keys = newKeys();

  it('makes tenants, principals and keys, and records each key', async () => {
    await seedTenants(database.adminUrl, specOf(keys));
    const { tenants, principals, api_keys, audit } = await everything();
    expect(tenants).toHaveLength(2);
    expect(principals).toHaveLength(3);
    expect(api_keys).toHaveLength(4);
    expect(audit.map(({ type }: { type: string }) => type)).toEqual(Array(4).fill('key.created'));
  });

  it('changes nothing when it is run again, by two at once', async () => {
    const before = await everything();
    await Promise.all([seedTenants(database.adminUrl, specOf(keys)), seedTenants(database.adminUrl, specOf(keys))]);
    expect(await everything()).toEqual(before);
  });

  it('adds the keys that are new and keeps those that are not named any more', async () => {
    await seedTenants(database.adminUrl, specOf({ ...keys, low: mintKey() }));
    expect((await everything()).api_keys).toHaveLength(5);
  });

  it('tells the running host when it changes the scopes of someone', async () => {
    const spec = specOf(keys);
    const [acme] = spec.tenants;
    await seedTenants(database.adminUrl, {
      tenants: [{ ...acme!, principals: [{ id: 'user-low', scopes: ['runs:read', 'runs:cancel'], keys: [] }] }],
    });
    expect((await everything()).revocations).toMatchObject([{ tenant: 'acme', reason: 'principal.scopes-changed' }]);
  });

  it('refuses what is not a key, and a key of somebody else, without repeating it', async () => {
    const nonsense = 'sk-not-one-of-ours';
    const bad = (key: string) => ({
      tenants: [{ id: 'acme', workspace: 'main', principals: [{ id: 'user-alice', scopes: [], keys: [key] }] }],
    });
    const before = await everything();
    await expect(seedTenants(database.adminUrl, bad(nonsense))).rejects.toThrow(
      /^A key of principal user-alice is not in the format of a key\.$/,
    );
    await expect(seedTenants(database.adminUrl, bad(keys.other))).rejects.toThrow(/belongs to someone else/);
    expect(await everything()).toEqual(before);
  });
});
