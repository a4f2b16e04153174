// What is measured, in this order, on one stack.
import { OURS } from './processes.mjs';
import { CONCURRENCIES } from './options.mjs';
import { added, difference, divided, median, ratio, sum, sumOfKnown, together } from './stats.mjs';
import { CALL, LIST, NOOPS } from './subjects.mjs';

/** The loads, by name. */
export const loadsOf = ({ host, bare }) => {
  const { baseUrl: origin, keys } = host;
  return {
    runs: { kind: 'run', origin, key: keys.primary, workflowId: NOOPS.id },
    calls: {
      ours: { kind: 'mcp', origin, path: '/mcp', key: keys.primary, request: CALL },
      bare: { kind: 'mcp', origin: bare.echo, path: '/', key: 'none', request: CALL },
    },
    lists: {
      ours: { kind: 'mcp', origin, path: '/mcp', key: keys.tenantB, request: LIST },
      bare: { kind: 'mcp', origin: bare.list, path: '/', key: 'none', request: LIST },
    },
    commits: { kind: 'commit', databaseUrl: host.databaseUrl },
    roundTrips: { kind: 'request', natsUrl: host.natsUrl },
  };
};

/** Before any load: memory, and what Postgres counts while nobody asks for anything. */
export async function idle(bench) {
  const before = await bench.counters.read();
  await bench.pause(bench.plan.idle);
  const after = await bench.counters.read();
  return { memory: bench.memory(), perSecond: divided(difference(before, after), bench.plan.idle / 1_000) };
}

/** Code is compiled, caches are filled and pools are open before anything counts. */
export async function warmUp(bench) {
  const { runs, calls, lists } = loadsOf(bench);
  for (const load of [runs, calls.ours, lists.ours, calls.bare, lists.bare])
    await bench.measure(load, { concurrency: 16, ms: bench.plan.warmUp });
}

/** (a), with what Postgres counted for it (e). While the counters settle, the floor of NATS is measured. */
export async function runs(bench) {
  const { runs: load, roundTrips } = loadsOf(bench);
  const settle = async (concurrency) => {
    const settled = bench.pause(bench.plan.settle);
    const floor = concurrency && together([await bench.measure(roundTrips, { concurrency, ms: bench.plan.floor })]).rate;
    await settled;
    return floor;
  };
  const found = { runs: {}, postgres: {}, roundTrips: {} };
  await settle();
  for (const concurrency of CONCURRENCIES) {
    const before = await bench.counters.read();
    const measured = await bench.measure(load, { concurrency, ms: bench.plan.runs });
    found.roundTrips[concurrency] = await settle(concurrency);
    found.postgres[concurrency] = divided(difference(before, await bench.counters.read()), measured.ops);
    found.runs[concurrency] = sideOf([measured]);
  }
  return found;
}

/** (b) and (c): both sides take turns, and change who begins. */
export async function against(bench, { ours, bare }) {
  const found = {};
  for (const concurrency of CONCURRENCIES) {
    const rounds = { ours: [], bare: [] };
    for (let round = 0; round < bench.plan.rounds; round += 1) {
      const sides = [
        ['ours', ours],
        ['bare', bare],
      ];
      for (const [side, load] of round % 2 === 0 ? sides : sides.toReversed())
        rounds[side].push(await bench.measure(load, { concurrency, ms: bench.plan.round }));
    }
    const rate = ({ ops, seconds }) => ops / seconds;
    const cost = ({ cpu, ops }, names) => sumOfKnown(names.map((name) => cpu[name])) / ops;
    found[concurrency] = {
      ours: sideOf(rounds.ours),
      bare: sideOf(rounds.bare),
      ...ratio(rounds.ours.map(rate), rounds.bare.map(rate)),
      cpuRatio: median(rounds.ours.map((each, round) => cost(each, OURS) / cost(rounds.bare[round], ['bare']))),
    };
  }
  return found;
}

const sideOf = (rounds) => {
  const ops = sum(rounds.map((round) => round.ops));
  const perOp = (name) => divided(rounds.map((round) => round[name]).reduce(added), ops);
  return { ...together(rounds), bytes: rounds[0].bytes, cpu: perOp('cpu'), calls: perOp('calls') };
};

/** How fast one core is now: fixed pieces of work per second of CPU. Figures of two benches compare as far as theirs do. */
export async function speed(bench) {
  const { ops, cpuMs } = await bench.load.ask('calibrate', { ms: bench.plan.floor });
  return (ops / cpuMs) * 1_000;
}

/** (f), the part that writes. */
export async function commits(bench) {
  await bench.counters.makeFloor();
  const found = {};
  for (const concurrency of CONCURRENCIES)
    found[concurrency] = together([await bench.measure(loadsOf(bench).commits, { concurrency, ms: bench.plan.floor })]).rate;
  return found;
}
