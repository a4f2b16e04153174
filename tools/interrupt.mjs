/**
 * Ctrl-C, SIGTERM and a closed terminal, as one AbortSignal. What is under way ends early, and the command's own `finally` stops
 * what it started; a second Ctrl-C does not cut that short (npm forwards the first one, so it often comes twice).
 */
export function interruption() {
  const controller = new AbortController();
  const interrupt = (reason) => {
    if (controller.signal.aborted) return;
    console.log('\nStopping …');
    controller.abort(new Error(`interrupted by ${reason}`));
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => interrupt(name));
  process.stdout.on('error', () => {}); // the terminal may be gone by then
  if (process.env.npm_lifecycle_event) watchParent(() => interrupt('the end of npm'));
  return controller.signal;
}

/** A killed npm passes nothing on: who runs under it ends when it is gone. */
function watchParent(gone) {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    gone();
  }, 500);
  timer.unref();
}

/** Resolves when the signal fires. */
export const aborted = (signal) =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    // A pending promise keeps no process alive; the timer does.
    const timer = setInterval(() => {}, 60_000);
    signal.addEventListener('abort', () => {
      clearInterval(timer);
      resolve();
    });
  });
