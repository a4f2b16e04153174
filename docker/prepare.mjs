// Once per deployment, as the database's administrator: migrations, roles that may log in, tenants and keys. Keys are kept in
// KEYS_FILE and never printed.
import { loadKeys, seed } from '../tools/keys.mjs';
import { deploy } from '../tools/migrate.mjs';

const { DATABASE_URL, KEYS_FILE = '/keys/keys.json' } = process.env;
const applied = await deploy(DATABASE_URL);
await seed(DATABASE_URL, await loadKeys(KEYS_FILE));
console.log(`${applied.length} migrations applied; the keys are in ${KEYS_FILE}`);
process.exit(0);
