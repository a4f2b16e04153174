/** A failure the user can do something about: shown as one sentence, without a stack. */
export class Advice extends Error {}

export const seconds = (ms) => `${(ms / 1000).toFixed(ms < 9_950 ? 1 : 0)} s`;

/** Runs one step and says how long it took. `work` may return a string, which is shown instead of the label. */
export async function step(label, work) {
  const began = performance.now();
  const isTerminal = process.stdout.isTTY;
  if (isTerminal) process.stdout.write(`  … ${label}`);
  // A log has no line to overwrite: there only a long step is announced.
  const announce = isTerminal ? undefined : setTimeout(() => console.log(`  … ${label}`), 2_000);
  try {
    const result = await work();
    if (isTerminal) process.stdout.write('\r\x1b[K');
    console.log(`  ✓ ${(typeof result === 'string' ? result : label).padEnd(58)} ${seconds(performance.now() - began)}`);
    return result;
  } catch (error) {
    if (isTerminal) process.stdout.write('\r\x1b[K');
    console.log(`  ✗ ${label.padEnd(58)} ${seconds(performance.now() - began)}`);
    throw error;
  } finally {
    clearTimeout(announce);
  }
}

/** Says what went wrong: the sentence alone where there is one, everything otherwise. */
export function complain(error) {
  console.error(error instanceof Advice ? `\n${error.message}` : error);
}
