import { rmSync } from 'node:fs';
import path from 'node:path';
import { writeAtomically } from '../files.mjs';
import { aborted, interruption } from '../interrupt.mjs';
import { inDev, requireDevDir } from '../paths.mjs';
import { Advice, complain, seconds } from '../say.mjs';
import { setUp } from '../setup.mjs';
import { Ledger, sweep } from '../stack/ledger.mjs';
import { findNats, requireNats } from '../stack/nats.mjs';
import { httpPort } from '../stack/ports.mjs';
import { parseOptions, USAGE } from './options.mjs';
import { terminalLines } from './terminal.mjs';

const stackFile = () => inDev('stack.json');
const relative = (file) => path.relative(process.cwd(), file);

/** Answers the exit code. */
export async function start(argv) {
  const began = performance.now();
  const signal = interruption();
  const stops = [];
  let ledger;
  let host;
  try {
    const options = parseOptions(argv);
    if (options.isHelp) {
      console.log(USAGE);
      return 0;
    }
    console.log('Isthmus');
    requireDevDir();
    await clearLeftovers();
    const port = await httpPort(process.env.PORT);
    ledger = new Ledger('start');
    ledger.note({ baseUrl: `http://127.0.0.1:${port}` });
    // Whatever only the user can mend is asked for before the long steps.
    if (process.env.NATS_URL) await requireNats(process.env.NATS_URL);
    else await findNats({ signal });
    await setUp({ signal });
    signal.throwIfAborted();

    host = await makeHost({ ...options, port, ledger, signal });
    await host.start();
    publish(host);
    announce(host, performance.now() - began);

    const isDone = options.mode === 'demo' ? await mainJob(host, { ledger, stops, signal }) : true;
    if (options.isOnce) return isDone ? 0 : 1;
    console.log('\nServing. Ctrl-C stops everything.');
    await aborted(signal);
    return 0;
  } catch (error) {
    if (signal.aborted) return 130;
    complain(error);
    return 1;
  } finally {
    if (ledger) rmSync(stackFile(), { force: true });
    for (const stop of stops) await stop();
    await host?.stop();
    ledger?.close();
  }
}

/** Ends what a killed start left; refuses when a start of this clone is still alive. */
async function clearLeftovers() {
  const { running, ended } = await sweep();
  const other = running.find((page) => page.kind === 'start');
  if (other)
    throw new Advice(`This clone is already running (process ${other.owner.pid}, ${other.baseUrl ?? 'starting'}): stop that one first.`);
  rmSync(stackFile(), { force: true });
  if (ended) console.log(`  ✓ stopped ${ended} ${ended === 1 ? 'process' : 'processes'} that an earlier start had left behind`);
}

async function makeHost({ port, mode, replicas, isVerbose, ledger, signal }) {
  const { Host } = await import('../stack/host.mjs');
  const { step } = await import('../say.mjs');
  return new Host({
    port,
    mode,
    replicas,
    ledger,
    signal,
    step,
    isDurable: true,
    databaseUrl: process.env.DATABASE_URL,
    natsUrl: process.env.NATS_URL,
    keysFile: inDev('keys.json'),
    logDir: path.dirname(inDev('logs', 'x')),
    onLine: terminalLines({ isVerbose }),
    onEnd: (process, { code, signal: name, isExpected }) => {
      if (!isExpected) console.log(`[${process.name}] ended (${name ?? `exit code ${code}`}), restarting; its log is in .dev/logs`);
    },
    onChange: (host) => host.isUp && publish(host),
  });
}

/** The file appears when the stack answers, and is rewritten whenever a process ends or starts. */
function publish(host) {
  writeAtomically(stackFile(), `${JSON.stringify(host.description, null, 2)}\n`, 0o600);
}

function announce(host, took) {
  console.log(`
Ready after ${seconds(took)}.
  REST  ${host.baseUrl}
  MCP   ${host.mcpUrl}
  keys  ${relative(stackFile())}
  logs  ${relative(inDev('logs'))}`);
}

/** Its remote server stays up afterwards, for whoever tries the commands it prints. */
async function mainJob(host, { ledger, stops, signal }) {
  try {
    const { runMainJob, startEverything } = await import('../demo.mjs');
    const everything = await startEverything({ ledger }, inDev('logs', 'everything.log'));
    stops.push(everything.stop);
    await runMainJob(host.description, { everythingUrl: everything.url, signal });
    return true;
  } catch (error) {
    if (signal.aborted) throw error;
    console.error('\nThe main job failed:', error);
    return false;
  }
}
