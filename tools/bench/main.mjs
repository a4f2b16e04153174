import os from 'node:os';
import path from 'node:path';
import { writeAtomically } from '../files.mjs';
import { interruption } from '../interrupt.mjs';
import { inDev, root } from '../paths.mjs';
import { Advice, complain, step } from '../say.mjs';
import { setUp } from '../setup.mjs';
import { Ledger, sweep } from '../stack/ledger.mjs';
import { findNats, requireNats } from '../stack/nats.mjs';
import { parseOptions, USAGE } from './options.mjs';

/** Answers the exit code. A mark that is missed is said, not an error: the machine may be busy. */
export async function bench(argv) {
  const interrupted = interruption();
  const stops = [];
  let limit;
  try {
    const options = parseOptions(argv);
    if (options.isHelp) {
      console.log(USAGE);
      return 0;
    }
    await sweep();
    if (process.env.NATS_URL) await requireNats(process.env.NATS_URL);
    else await findNats({ signal: interrupted });
    await setUp({ signal: interrupted });

    const over = new AbortController();
    limit = setTimeout(
      () =>
        over.abort(new Advice(`The bench took longer than ${options.plan.limit / 1_000} s and was given up: is the machine very busy?`)),
      options.plan.limit,
    );
    const signal = AbortSignal.any([interrupted, over.signal]);
    const { isProfile, plan } = options;
    const prepared = await prepare({ plan, isProfile, signal, stops, fail: (error) => over.abort(error) });
    if (isProfile) console.log(`\n${await (await import('./profile.mjs')).profileHotPaths(prepared)}`);
    else await measureAndReport(prepared);
    return 0;
  } catch (error) {
    if (interrupted.aborted) return 130;
    complain(error);
    return 1;
  } finally {
    clearTimeout(limit);
    for (const stop of stops.reverse()) await stop();
  }
}

/** The stack, with real flushes on data of its own, and the processes that load it and that it is compared with. */
async function prepare({ plan, isProfile, signal, stops, fail }) {
  const { Host } = await import('../stack/host.mjs');
  const { Bench } = await import('./bench.mjs');
  const { Counters } = await import('./counters.mjs');
  const { INSPECTABLE, Inspectors } = await import('./inspect.mjs');
  const { Worker } = await import('./worker.mjs');
  const ledger = new Ledger('bench');
  stops.push(() => ledger.close());
  const inspectors = new Inspectors();
  const host = new Host({
    isDurable: true,
    isKept: false,
    databaseUrl: await borrowed(stops),
    natsUrl: process.env.NATS_URL,
    logDir: path.dirname(inDev('bench', 'logs', 'x')),
    env: isProfile ? INSPECTABLE : {},
    ledger,
    signal,
    step,
    onLine: (service, _stream, text) => inspectors.heard(service, text),
    onEnd: (service, { code, signal: name, isExpected }) => {
      if (!isExpected)
        fail(new Error(`${service.name} ended while it was measured (${name ?? `exit code ${code}`}); its log is in .dev/bench/logs`));
    },
  });
  stops.push(() => host.stop());
  await host.start();
  const load = new Worker('load.mjs', { ledger });
  stops.push(() => load.stop());
  const peers = new Worker('peers.mjs', { ledger });
  stops.push(() => peers.stop());
  const bare = await peers.ask('start', { natsUrl: host.natsUrl }, signal);
  const counters = await Counters.open(host.databaseUrl);
  stops.push(() => counters.close());
  return new Bench({ host, load, peers, bare, counters, inspectors, plan, signal });
}

/** A database of our own on the user's server, where that is named. */
async function borrowed(stops) {
  if (!process.env.DATABASE_URL) return undefined;
  const { borrowDatabase } = await import('../test/database.mjs');
  const { url, stop } = await borrowDatabase(process.env.DATABASE_URL);
  stops.push(stop);
  return url;
}

async function measureAndReport(bench) {
  const sections = await import('./sections.mjs');
  const { judge } = await import('./marks.mjs');
  const { report } = await import('./report.mjs');
  const loads = sections.loadsOf(bench);
  const at = new Date();
  const idle = await step('idle: memory, and what Postgres counts by itself', () => sections.idle(bench));
  await step('52 workflows registered', () => bench.register());
  await step('warmed up', () => sections.warmUp(bench));
  const runs = await step('(a) runs, (e) what Postgres counts for them', () => sections.runs(bench));
  const calls = await step('(b) tools/call, in turns with a bare SDK server', () => sections.against(bench, loads.calls));
  const lists = await step('(c) tools/list, in turns with a bare SDK server', () => sections.against(bench, loads.lists));
  const loaded = bench.memory();
  const commits = await step('(f) the floor', () => sections.commits(bench));
  const speed = await sections.speed(bench);

  const results = {
    at: at.toISOString(),
    plan: bench.plan.name,
    node: process.versions.node,
    cores: os.cpus().length,
    loadAverage: os.loadavg()[0],
    othersShare: bench.othersShare,
    speed,
    database: await bench.counters.describe(),
    runs: runs.runs,
    calls,
    lists,
    memory: { idle: idle.memory, loaded },
    postgres: { ...runs.postgres, idlePerSecond: idle.perSecond },
    floor: { commits, roundTrips: runs.roundTrips },
  };
  results.marks = judge(results);
  console.log(`\n${report(results)}\n\nWritten to ${write(results, at)}`);
}

/** Under its date, and as the latest. */
function write(results, at) {
  const file = inDev('bench', `${at.toISOString().replaceAll(':', '-')}.json`);
  for (const name of [file, inDev('bench', 'latest.json')]) writeAtomically(name, `${JSON.stringify(results, null, 2)}\n`);
  return path.relative(root, file);
}
