import pg from 'pg';
import { drift } from './migrate.mjs';
import { roleOf, serviceUrl } from './roles.mjs';
import { SERVICES } from './stack/host.mjs';

const adminUrl = process.env.TEST_DATABASE_URL;

async function whoAmI(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(
      'select current_user as name, rolsuper, rolbypassrls, rolcreaterole from pg_roles where rolname = current_user',
    );
    return rows[0];
  } finally {
    await client.end();
  }
}

describe('service roles', () => {
  it.each(SERVICES.filter(roleOf))('%s logs in as itself, without power over policies', async (service) => {
    expect(await whoAmI(serviceUrl(adminUrl, service))).toEqual({
      name: roleOf(service),
      rolsuper: false,
      rolbypassrls: false,
      rolcreaterole: false,
    });
  });

  it('leave the gateway without a database', () => {
    expect(serviceUrl(adminUrl, 'gateway')).toBeUndefined();
  });

  it('have passwords that hold for every database of the server, and no other role', () => {
    const cloned = new URL(adminUrl);
    cloned.pathname = '/clone';
    expect(new URL(serviceUrl(cloned.href, 'engine')).password).toBe(new URL(serviceUrl(adminUrl, 'engine')).password);
    expect(new URL(serviceUrl(adminUrl, 'authz')).password).not.toBe(new URL(serviceUrl(adminUrl, 'engine')).password);
  });
});

describe('migrations', () => {
  it('lead to exactly what schema.prisma says', async () => {
    expect(await drift(adminUrl)).toMatchObject({ exitCode: 0 });
  });
});
