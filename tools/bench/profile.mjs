// Where the time goes: profiles of the services on the hot paths, summed up by function and by package.
import path from 'node:path';
import { writeAtomically } from '../files.mjs';
import { inDev, root } from '../paths.mjs';
import { step } from '../say.mjs';
import { nearestNamed, selfTimes } from './self-times.mjs';
import { sourceOf } from './source-of.mjs';
import { loadsOf, warmUp } from './sections.mjs';
import { table } from './table.mjs';

const TOP = 25;
/** Who is less busy than this on a path has no part in it. */
const BYSTANDER = 0.1;
const HOT = ['gateway-1', 'engine-1', 'mcp-server-1'];

/** Answers a text; the profiles themselves lie in `.dev/bench`, for Chrome's or VS Code's viewer. */
export async function profileHotPaths(bench) {
  await step('52 workflows registered', () => bench.register());
  await step('warmed up', () => warmUp(bench));
  const { runs, calls, lists } = loadsOf(bench);
  const paths = { runs, calls: calls.ours, lists: lists.ours };
  const parts = [];
  for (const [name, load] of Object.entries(paths)) {
    parts.push(...(await step(`${name} at concurrency 16, profiled`, () => profiled(bench, name, load))));
  }
  return parts.join('\n\n');
}

async function profiled(bench, name, load) {
  const processes = HOT.map((process) => bench.host.process(process));
  const samplers = await Promise.all(processes.map((process) => bench.inspectors.profile(process)));
  const { ops } = await bench.measure(load, { concurrency: 16, ms: bench.plan.runs });
  const profiles = await Promise.all(samplers.map((sampler) => sampler.stop()));
  return profiles.flatMap((profile, index) => {
    const { name: process } = processes[index];
    const file = inDev('bench', `${name}-${process}.cpuprofile`);
    writeAtomically(file, JSON.stringify(profile));
    const times = selfTimes(profile);
    const busy = times.busy / times.all;
    const title = `${name}: ${process} is busy ${Math.round(busy * 100)} % of the time, ${ops} operations (${path.relative(root, file)})`;
    return busy < BYSTANDER ? [] : [`${title}\n${summary(times, ops)}`];
  });
}

/** By whom the time was spent: a built-in's time is that of whoever called it, but for the last table. */
function summary({ frames, busy }, ops) {
  const by = (title, count, labelOf) => {
    const sums = new Map();
    for (const frame of frames) sums.set(labelOf(frame), (sums.get(labelOf(frame)) ?? 0) + frame.us);
    const most = [...sums].sort(([, one], [, other]) => other - one).slice(0, count);
    return table(
      [title, '% of busy', 'ms/op'],
      most.map(([label, us]) => [label, (us / busy) * 100, us / 1_000 / ops]),
    );
  };
  return [
    by('by package', 14, ({ stack }) => packageOf(nearestNamed(stack).url)),
    by('by function', TOP, ({ stack }) => sourceOf(nearestNamed(stack))),
    by('by function, itself alone', TOP, ({ stack }) => sourceOf(stack[0])),
  ].join('\n');
}

function packageOf(url) {
  if (!url) return '(the machine: garbage collection, compilation, sockets)';
  const inModules = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1];
  if (inModules) return inModules;
  return /\/((?:apps|libs)\/[^/]+)\//.exec(url)?.[1] ?? url;
}
