import { interruption } from '../interrupt.mjs';
import { requireDevDir } from '../paths.mjs';
import { complain, step } from '../say.mjs';
import { setUp } from '../setup.mjs';
import { Ledger, sweep } from '../stack/ledger.mjs';
import { findNats, requireNats, roomsConfig, startNats } from '../stack/nats.mjs';
import { runChecks } from './checks.mjs';
import { runJest } from './jest.mjs';

/** A NATS account for each jest worker there could be. */
const ROOMS = 64;

/** Answers the exit code. */
export async function test(args) {
  const signal = interruption();
  let ledger;
  const stops = [];
  try {
    requireDevDir();
    await sweep();
    ledger = new Ledger('test');
    if (process.env.NATS_URL) await requireNats(process.env.NATS_URL);
    else await findNats({ signal });
    await setUp({ signal });
    signal.throwIfAborted();

    const results = [];
    // With arguments somebody looks at a few tests: the checks of the whole tree would only delay them.
    if (args.length === 0) results.push(...(await runChecks(signal)));
    const env = await backing({ ledger, stops, signal });
    signal.throwIfAborted();
    results.push(...(await runJest(args, { env, signal })));

    const passed = sum(results, 'passed');
    const failed = sum(results, 'failed');
    console.log(`\n${passed} passed, ${failed} failed`);
    return failed === 0 ? 0 : 1;
  } catch (error) {
    if (signal.aborted) return 130;
    complain(error);
    return 1;
  } finally {
    for (const stop of stops.reverse()) await stop();
    ledger?.close();
    await sweep(); // whatever an interrupted test left running
  }
}

const sum = (results, key) => results.reduce((total, result) => total + result[key], 0);

/** One migrated database and one NATS for all tests; who needs a stack of its own starts it. */
async function backing({ ledger, stops, signal }) {
  const { startPostgres } = await import('../stack/postgres.mjs');
  const { borrowDatabase } = await import('./database.mjs');
  const { deploy } = await import('../migrate.mjs');
  const { chooseBackend, startContainers } = await import('./containers.mjs');
  if (!process.env.DATABASE_URL && !process.env.NATS_URL && (await chooseBackend()) === 'docker') {
    let containers;
    await step('test Postgres and NATS started in containers', async () => {
      containers = await startContainers({ natsConfig: roomsConfig(ROOMS) });
      stops.push(containers.stop);
    });
    await step('test database migrated', async () => void (await deploy(containers.databaseUrl)));
    return { TEST_DATABASE_URL: containers.databaseUrl, TEST_NATS_URL: containers.natsUrl };
  }
  let databaseUrl;
  await step(process.env.DATABASE_URL ? 'test database made' : 'test Postgres started', async () => {
    const postgres = process.env.DATABASE_URL ? await borrowDatabase(process.env.DATABASE_URL) : await startPostgres({ watch: { ledger } });
    stops.push(postgres.stop);
    databaseUrl = postgres.url;
  });
  signal.throwIfAborted();
  let natsUrl = process.env.NATS_URL;
  if (!natsUrl) {
    await step('test NATS started', async () => {
      const nats = await startNats({ watch: { ledger }, rooms: ROOMS });
      stops.push(nats.stop);
      natsUrl = nats.url;
    });
  }
  signal.throwIfAborted();
  await step('test database migrated', async () => void (await deploy(databaseUrl)));
  return { TEST_DATABASE_URL: databaseUrl, TEST_NATS_URL: natsUrl };
}
