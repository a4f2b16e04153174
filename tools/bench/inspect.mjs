// CPU profiles of running services, over Node's inspector: opened by a signal, so that nothing is different before.
import { WebSocket } from 'undici';

/** SIGUSR1 then opens the inspector on loopback, on a port the kernel chooses. (`--cpu-prof` is not allowed in NODE_OPTIONS on Node 20.) */
export const INSPECTABLE = { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --inspect-port=0`.trim() };

const SAMPLE_US = 200;
const PATIENCE_MS = 10_000;

/** Where each process said that its inspector listens. */
export class Inspectors {
  #urls = new Map();
  #waiting = new Map();

  /** A line that `process` wrote. */
  heard({ name }, text) {
    const url = /^Debugger listening on (ws:\/\/127\.0\.0\.1:\d+\/[0-9a-f-]+)$/.exec(text)?.[1];
    if (!url) return;
    this.#urls.set(name, url);
    this.#waiting.get(name)?.(url);
  }

  /** Begins to sample; `stop` answers the profile. */
  async profile(process) {
    const session = await Session.open(await this.#urlOf(process));
    await session.ask('Profiler.enable');
    await session.ask('Profiler.setSamplingInterval', { interval: SAMPLE_US });
    await session.ask('Profiler.start');
    return {
      stop: async () => {
        const { profile } = await session.ask('Profiler.stop');
        session.close();
        return profile;
      },
    };
  }

  #urlOf(process) {
    const known = this.#urls.get(process.name);
    if (known) return known;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${process.name} opened no inspector`)), PATIENCE_MS);
      this.#waiting.set(process.name, (url) => {
        clearTimeout(timer);
        resolve(url);
      });
      process.signal('SIGUSR1');
    });
  }
}

/** A connection that speaks the DevTools protocol. */
class Session {
  #socket;
  #waiting = new Map();
  #next = 1;

  static open(url) {
    const session = new Session();
    session.#socket = new WebSocket(url);
    session.#socket.addEventListener('message', ({ data }) => {
      const { id, result, error } = JSON.parse(data);
      const waiting = session.#waiting.get(id);
      session.#waiting.delete(id);
      if (error) waiting?.reject(new Error(error.message));
      else waiting?.resolve(result);
    });
    return new Promise((resolve, reject) => {
      session.#socket.addEventListener('open', () => resolve(session));
      session.#socket.addEventListener('error', () => reject(new Error(`no inspector at ${url}`)));
    });
  }

  ask(method, params = {}) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }

  close() {
    this.#socket.close();
  }
}
