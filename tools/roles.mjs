// Every service logs in to Postgres as its own role. The migrations create the roles without login (a password has no place in a
// migration); here they get one, derived from the administrator's, so that nothing needs to be stored and several clones
// that share a server agree.
import { createHmac } from 'node:crypto';
import pg from 'pg';

/** Services that own data; the gateway keeps nothing. */
const ROLES = {
  engine: 'isthmus_engine',
  authz: 'isthmus_authz',
  'mcp-client': 'isthmus_mcp_client',
  'mcp-server': 'isthmus_mcp_server',
};

export const roleOf = (service) => (Object.hasOwn(ROLES, service) ? ROLES[service] : undefined);

// The database's name is left out: roles belong to the server, and tests clone databases. A deployment that keeps secrets of its
// own sets them instead: ISTHMUS_ENGINE_PASSWORD and so on.
const password = (adminUrl, role) => {
  const given = process.env[`${role.toUpperCase()}_PASSWORD`];
  if (given) return given;
  const { username, password: secret } = new URL(adminUrl);
  return createHmac('sha256', `${username}:${secret}`).update(role).digest('hex');
};

/** The connection string of one service, or undefined for a service that has no business in the database. */
export function serviceUrl(adminUrl, service) {
  const role = roleOf(service);
  if (!role) return undefined;
  const url = new URL(adminUrl);
  url.username = role;
  url.password = password(adminUrl, role);
  return url.href;
}

/** Lets the roles log in. Run after the migrations, as often as you like. */
export async function ensureRoles(adminUrl) {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query('begin');
    // Two clones that start at once would otherwise fail with "tuple concurrently updated".
    await client.query(`select pg_advisory_xact_lock(hashtext('isthmus roles'))`);
    const { rows } = await client.query('select rolname from pg_roles where rolname = any($1)', [Object.values(ROLES)]);
    for (const { rolname } of rows) {
      await client.query(
        `alter role ${client.escapeIdentifier(rolname)} login password ${client.escapeLiteral(password(adminUrl, rolname))}`,
      );
    }
    await client.query('commit');
  } finally {
    await client.end();
  }
}
