import net from 'node:net';

export type Place = { readonly name: string; readonly host: string; readonly port: number };

/** Where `urls` (separated by commas) lead to: the hosts only, so that the result may be logged. */
export function placesOf(name: string, urls: string, defaultPort: number): Place[] {
  return urls.split(',').map((text) => {
    const url = new URL(text.includes('://') ? text.trim() : `${name}://${text.trim()}`);
    return { name, host: url.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1', port: Number(url.port) || defaultPort };
  });
}

/** Undefined when somebody accepts connections there, else why not. */
export function knock({ host, port }: Place, timeoutMs = 2_000): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = net.connect({ host, port });
    const answer = (problem?: string) => {
      socket.destroy();
      resolve(problem);
    };
    socket.setTimeout(timeoutMs, () => answer('no answer'));
    socket.once('connect', () => answer());
    socket.once('error', (error: NodeJS.ErrnoException) => answer(error.code ?? 'unreachable'));
  });
}

/** Returns when one of `places` accepts connections; tells `onWait` once, at the first try that failed. */
export async function untilReachable(
  places: readonly Place[],
  { signal, onWait }: { signal: AbortSignal; onWait: (problem: string) => void },
): Promise<void> {
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    const problems = await Promise.all(places.map((place) => knock(place)));
    if (problems.some((problem) => problem === undefined)) return;
    if (attempt === 0) onWait(places.map(({ host, port }, index) => `${host}:${port} (${problems[index]})`).join(', '));
    await pause(Math.min(200 * 2 ** attempt, 2_000), signal);
  }
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done, { once: true });
  });
