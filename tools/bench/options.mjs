import { parseArgs } from 'node:util';
import { Advice } from '../say.mjs';

export const USAGE = `npm run bench -- [flags]
  --quick     one short round of everything: for a look, not for a comparison
  --profile   where the time goes: CPU profiles of the services on the hot paths, instead of measurements
DATABASE_URL and NATS_URL name servers of your own; both are left as they were.`;

export function parseOptions(argv) {
  try {
    const { values } = parseArgs({
      args: argv,
      options: { quick: { type: 'boolean' }, profile: { type: 'boolean' }, help: { type: 'boolean' } },
    });
    return { isHelp: values.help === true, isProfile: values.profile === true, plan: values.quick === true ? QUICK : FULL };
  } catch {
    throw new Advice(`Unknown flag among "${argv.join(' ')}": use --quick, --profile or --help.`);
  }
}

/**
 * All in milliseconds, but for `rounds`: where a ratio is formed, both sides take turns that often. `settle`: a session of Postgres
 * hands in what it counted at most once a second, and else after ten idle seconds, so a quick bench's fsyncs are roughly right.
 */
const FULL = {
  name: 'full',
  warmUp: 5_000,
  idle: 10_000,
  runs: 12_000,
  settle: 10_500,
  rounds: 3,
  round: 3_000,
  floor: 2_500,
  limit: 240_000,
};
const QUICK = {
  name: 'quick',
  warmUp: 1_500,
  idle: 2_000,
  runs: 4_000,
  settle: 1_500,
  rounds: 1,
  round: 1_500,
  floor: 1_000,
  limit: 120_000,
};

export const CONCURRENCIES = [1, 16];
