import type { Graph } from '../core/graph.js';
import type { RunRow } from '../store/run-log.js';
import type { DriverSettings } from './settings.js';

const asked = (run: RunRow, key: string): number[] => {
  const value = run.options.configurable?.[key];
  return typeof value === 'number' ? [value] : [];
};

/** What a run may ask for is bounded by what the host allows; higher values are clamped. (RFC 0058) */
export const executionLimit = (run: RunRow, { maxNodeExecutions }: DriverSettings): number =>
  Math.min(maxNodeExecutions, ...asked(run, 'recursionLimit'));

/** Milliseconds from `run.started`; time spent waiting counts. */
export function durationLimit(run: RunRow, { definition }: Graph, { maxRunDurationMs }: DriverSettings): number {
  const { timeout } = definition.settings;
  return Math.min(maxRunDurationMs, ...asked(run, 'runTimeoutMs'), ...(typeof timeout === 'number' && timeout > 0 ? [timeout] : []));
}
