import { until } from './wait.js';

/** Kinds of things that keep a process alive. */
const WATCHED: ReadonlySet<string> = new Set(['TCPSocketWrap', 'TCPServerWrap', 'PipeWrap', 'Timeout', 'Immediate', 'ProcessWrap']);

/**
 * Remembers what is open now; `settled` resolves when no more than that is open and fails naming what is.
 * @example const leaks = watchLeaks(); … app.close(); await leaks.settled();
 */
export function watchLeaks(): { settled(timeoutMs?: number): Promise<void> } {
  const before = open();
  const left = () =>
    [...open()]
      .filter(([kind, count]) => count > (before.get(kind) ?? 0))
      .map(([kind, count]) => `${kind} +${count - (before.get(kind) ?? 0)}`);
  return {
    async settled(timeoutMs = 2_000) {
      // The waiting itself has a timer, which is not among the resources while its callback runs.
      await until(() => left().length === 0, { timeoutMs }).catch(() => {
        throw new Error(`still open: ${left().join(', ')}`);
      });
    },
  };
}

function open(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) if (WATCHED.has(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}
