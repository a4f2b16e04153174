// What was set out to be reached on two cores (issue 2, "Speed"), whether it was, and where it goes if not. Pure.
import { OURS } from './processes.mjs';
import { sumOfKnown } from './stats.mjs';
import { format } from './table.mjs';

/** `of` finds the figure in the results; one that could not be measured is no number. `where` is said when the mark is missed. */
export const MARKS = [
  {
    name: 'three-node runs at concurrency 16',
    unit: 'runs/s',
    atLeast: 250,
    of: ({ runs }) => runs[16].rate,
    where: ({ runs, cores, othersShare }) => {
      const { cpu } = runs[16];
      const most = (cores * 1_000) / (whole(cpu) + cpu.client);
      return `${shares(cpu)} and ${format(cpu.client)} of the client: ${cores} cores allow ${format(most)} runs/s, and other processes took ${format(othersShare * 100)} %`;
    },
  },
  {
    name: 'p50 of a three-node run at concurrency 1',
    unit: 'ms',
    atMost: 15,
    of: ({ runs }) => runs[1].p50,
    where: ({ runs, postgres, floor }) =>
      `${format((postgres[1].writes * 1_000) / floor.commits[1])} ms are commits one after the other on this disk; ${shares(runs[1].cpu)}`,
  },
  {
    name: 'tools/call against a bare SDK server',
    unit: '× bare',
    atLeast: 0.15,
    of: ({ calls }) => calls[16].ratio,
    where: ({ calls }) => shares(calls[16].ours.cpu),
  },
  {
    name: 'tools/list of 50 tools against a bare SDK server',
    unit: '× bare',
    atLeast: 1,
    of: ({ lists }) => lists[16].ratio,
    where: ({ lists }) => shares(lists[16].ours.cpu),
  },
  {
    name: 'WAL fsyncs per run at concurrency 1',
    unit: '',
    atMost: 3,
    of: ({ postgres }) => postgres[1].fsyncs,
    where: ({ postgres }) => `${format(postgres[1].writes)} transactions that write`,
  },
  {
    name: 'WAL per run, at the worse concurrency',
    unit: 'kB',
    atMost: 20,
    of: ({ postgres }) => Math.max(postgres[1].walKb, postgres[16].walKb),
    where: ({ postgres }) => `${format(Math.max(postgres[1].fullPages, postgres[16].fullPages))} full pages`,
  },
  {
    name: 'idle memory of all five',
    unit: 'MB',
    atMost: 700,
    of: ({ memory }) => memory.idle.total,
    where: ({ memory: { idle } }) => list(Object.entries(idle).filter(([name]) => name !== 'total')),
  },
];

const whole = (cpu) => sumOfKnown(OURS.map((name) => cpu[name]));
const list = (entries) => entries.map(([name, value]) => `${name} ${format(value)}`).join(', ');

/** `11.2 ms of CPU (engine 4.7, …)`, the greatest first, without crumbs. */
function shares(cpu) {
  const total = whole(cpu);
  const parts = OURS.map((name) => [name, cpu[name]])
    .filter(([, value]) => value > total / 50)
    .sort(([, one], [, other]) => other - one);
  return `${format(total)} ms of CPU (${list(parts)})`;
}

export function judge(results, marks = MARKS) {
  return marks.map(({ name, unit, atLeast, atMost, of, where }) => {
    const value = of(results);
    const mark = atLeast ?? atMost;
    const isMeasured = Number.isFinite(value);
    const isReached = isMeasured && (atLeast === undefined ? value <= mark : value >= mark);
    const missed = isMeasured && !isReached && { missedBy: value / mark - 1, where: where(results) };
    return { name, unit, mark, isFloor: atLeast !== undefined, value, isMeasured, isReached, ...missed };
  });
}

export function verdict({ isMeasured, isReached, missedBy }) {
  if (!isMeasured) return 'not measured here';
  return isReached ? 'reached' : `MISSED by ${format(Math.abs(missedBy) * 100)} %`;
}
