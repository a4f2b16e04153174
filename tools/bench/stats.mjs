// Numbers about numbers. Pure.

/** The smallest value that at least `share` of the sorted values do not exceed (nearest rank). */
export function percentile(sorted, share) {
  if (sorted.length === 0) return Number.NaN;
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Several measurements of one thing as one: rates over all time, percentiles over all latencies. */
export function together(measurements) {
  const ops = sum(measurements.map((each) => each.ops));
  const seconds = sum(measurements.map((each) => each.seconds));
  const sorted = measurements.flatMap((each) => each.latencies).sort((a, b) => a - b);
  return { ops, seconds, rate: ops / seconds, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) };
}

/**
 * Ours against theirs: the median over rounds that were measured side by side, so that a neighbour's load hits both.
 * `spread` is the lowest and the highest round.
 */
export function ratio(ours, theirs) {
  const rounds = ours.map((value, round) => value / theirs[round]);
  return { ratio: median(rounds), spread: [Math.min(...rounds), Math.max(...rounds)] };
}

/** The differences of two snapshots with the same keys. */
export const difference = (before, after) => Object.fromEntries(Object.keys(before).map((key) => [key, after[key] - before[key]]));

export const divided = (values, by) => Object.fromEntries(Object.entries(values).map(([key, value]) => [key, value / by]));

export const added = (one, other) => Object.fromEntries(Object.keys(one).map((key) => [key, one[key] + other[key]]));

export const sum = (values) => values.reduce((total, value) => total + value, 0);

/** What could be measured, added up: a server that is not ours to look into has no figures. */
export function sumOfKnown(values) {
  const known = values.filter(Number.isFinite);
  return known.length > 0 ? sum(known) : Number.NaN;
}
