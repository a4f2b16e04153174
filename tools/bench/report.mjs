// The results as people read them. Pure.
import { OURS, TALKING } from './processes.mjs';
import { verdict } from './marks.mjs';
import { CONCURRENCIES } from './options.mjs';
import { sumOfKnown } from './stats.mjs';
import { format, table } from './table.mjs';

const percent = (share) => `${Math.round(share * 100)} %`;
const whole = (cpu) => sumOfKnown(OURS.map((name) => cpu[name]));

export function report(results) {
  return [
    head(results),
    runs(results),
    postgres(results),
    against('(b) tools/call of an exposed echo workflow', results.calls),
    against('(c) tools/list of 50 tools', results.lists),
    memory(results),
    floor(results),
    marks(results),
  ].join('\n\n');
}

const head = ({ at, plan, node, cores, database, loadAverage, othersShare, speed }) =>
  [
    `Isthmus bench (${plan}), ${at}`,
    `Node ${node}, Postgres ${database.server_version} (fsync ${database.fsync}, ${database.wal_sync_method}), ${cores} cores`,
    `Load average ${format(loadAverage)}; other processes took ${percent(othersShare)} of the machine; one core did ${format(speed / 1_000)}k pieces of fixed work a second:`,
    'trust ratios, counts and CPU per operation before rates and times.',
  ].join('\n');

function runs({ runs: found }) {
  const rows = CONCURRENCIES.map((concurrency) => {
    const { rate, p50, p99, cpu } = found[concurrency];
    return [`at concurrency ${concurrency}`, rate, p50, p99, whole(cpu)];
  });
  return `(a) three no-op nodes, create → completed seen over SSE\n${table(['', 'runs/s', 'p50 ms', 'p99 ms', 'CPU ms/run'], rows)}\n\n${costs('run', (concurrency) => found[concurrency])}`;
}

/** Who pays for an operation. */
function costs(operation, of) {
  const rows = CONCURRENCIES.flatMap((concurrency) => {
    const { cpu, calls } = of(concurrency);
    return [
      [`CPU ms per ${operation} at concurrency ${concurrency}`, ...OURS.map((name) => cpu[name]), cpu.client],
      ['reads and writes of sockets', ...OURS.map((name) => (TALKING.includes(name) ? calls[name] : undefined)), calls.client],
    ];
  });
  return table(['by process', ...OURS, '(client)'], rows);
}

function postgres({ postgres: found }) {
  const row = (label, { transactions, writes, fsyncs, walKb, fullPages }) => [label, transactions, writes, fsyncs, walKb, fullPages];
  const rows = [
    ...CONCURRENCIES.map((concurrency) => row(`per run at concurrency ${concurrency}`, found[concurrency])),
    row('per second, idle', found.idlePerSecond),
  ];
  return `(e) what Postgres counted\n${table(['', 'transactions', 'that write', 'WAL fsyncs', 'WAL kB', 'full pages'], rows)}`;
}

function against(title, found) {
  const rows = CONCURRENCIES.flatMap((concurrency) => {
    const { ours, bare, ratio, spread, cpuRatio } = found[concurrency];
    const rounds = spread.map(format).join('–');
    return [
      [`Isthmus at concurrency ${concurrency}`, ours.rate, ours.p50, ours.p99, ratio, rounds, whole(ours.cpu), cpuRatio],
      [`bare SDK at concurrency ${concurrency}`, bare.rate, bare.p50, bare.p99, 1, undefined, bare.cpu.bare, 1],
    ];
  });
  const head = ['', 'per second', 'p50 ms', 'p99 ms', 'ratio', 'rounds', 'CPU ms', 'CPU ratio'];
  return `${title}\n${table(head, rows)}\n\n${costs('request', (concurrency) => found[concurrency].ours)}`;
}

function memory({ memory: { idle, loaded } }) {
  const rows = [
    ['idle', ...Object.values(idle)],
    ['after load', ...Object.values(loaded)],
  ];
  return `(d) resident memory, MB\n${table(['', ...Object.keys(idle)], rows)}`;
}

function floor({ floor: { commits, roundTrips } }) {
  const row = (label, found) => [label, ...CONCURRENCIES.map((concurrency) => found[concurrency])];
  const head = ['', ...CONCURRENCIES.map((concurrency) => `at concurrency ${concurrency}`)];
  return `(f) the floor, per second\n${table(head, [row('Postgres commits of one row', commits), row('NATS request and reply', roundTrips)])}`;
}

function marks({ marks: judged }) {
  const rows = judged.map((mark) => [mark.name, `${mark.isFloor ? '≥' : '≤'} ${format(mark.mark)}`, mark.value, mark.unit, verdict(mark)]);
  const lost = judged.filter(({ where }) => where).map(({ name, where }) => `  ${name}: ${where}`);
  return ['Marks', table(['', 'mark', 'measured', '', ''], rows), ...(lost.length > 0 ? ['\nWhere it goes', ...lost] : [])].join('\n');
}
