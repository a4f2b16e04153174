import { parseArgs } from 'node:util';
import { Advice } from '../say.mjs';

const SERVICES = ['gateway', 'authz', 'engine', 'mcp-client', 'mcp-server'];

export const USAGE = `npm start -- [flags]
  --once                      exit after the main job
  --no-demo                   serve only, without the main job
  --conformance               two engines and two mcp-servers, fixtures and test seams on, no main job
  --replicas engine=2,…       how many processes of a service to run (at most one gateway)
  --verbose                   show every log line, not only warnings and errors
PORT (8080) moves the HTTP port; DATABASE_URL and NATS_URL name servers of your own.`;

export function parseOptions(argv) {
  let values;
  try {
    ({ values } = parseArgs({
      args: argv,
      options: {
        once: { type: 'boolean' },
        'no-demo': { type: 'boolean' },
        conformance: { type: 'boolean' },
        replicas: { type: 'string' },
        verbose: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    }));
  } catch (error) {
    const unknown = /Unknown option '([^']+)'|Unexpected argument '([^']+)'/.exec(error.message);
    if (unknown)
      throw new Advice(
        `Unknown flag "${unknown[1] ?? unknown[2]}": use --once, --no-demo, --conformance, --replicas, --verbose or --help.`,
      );
    throw new Advice(error.message);
  }
  const isConformance = values.conformance === true;
  return {
    isHelp: values.help === true,
    isOnce: values.once === true,
    isVerbose: values.verbose === true,
    mode: isConformance ? 'conformance' : values['no-demo'] ? 'plain' : 'demo',
    replicas: { ...(isConformance && { engine: 2, 'mcp-server': 2 }), ...parseReplicas(values.replicas) },
  };
}

function parseReplicas(text) {
  if (text === undefined) return {};
  return Object.fromEntries(
    text.split(',').map((entry) => {
      const [service, count] = entry.split('=');
      const isRight = SERVICES.includes(service) && /^[1-9]$/.test(count ?? '') && !(service === 'gateway' && count !== '1');
      if (!isRight)
        throw new Advice(
          `--replicas takes service=count with a count from 1 to 9, for example engine=2,mcp-server=2 (services: ${SERVICES.join(', ')}; one gateway); not "${entry}".`,
        );
      return [service, Number(count)];
    }),
  );
}
