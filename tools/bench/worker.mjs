// A helper process of the bench: asked over its IPC channel, gone with its parent.
import { fork } from 'node:child_process';
import path from 'node:path';

export class Worker {
  #child;
  #waiting = new Map();
  #next = 0;
  #ledger;
  #ended;

  constructor(file, { ledger, env = {} }) {
    this.#ledger = ledger;
    this.#child = fork(path.join(import.meta.dirname, file), {
      execArgv: [],
      env: { PATH: process.env.PATH, NODE_ENV: 'production', ...env },
    });
    ledger.add(`bench ${file}`, this.#child.pid);
    this.#ended = new Promise((resolve) => this.#child.once('close', resolve));
    this.#child.on('message', ({ id, error, result }) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) waiting?.reject(new Error(error));
      else waiting?.resolve(result);
    });
    void this.#ended.then(() => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`${file} ended before it answered`));
    });
  }

  get pid() {
    return this.#child.pid;
  }

  /** Rejects with what the worker says went wrong, or when `signal` fires. */
  ask(task, given = {}, signal) {
    signal?.throwIfAborted();
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(signal.reason);
      const done = (settle) => (value) => {
        signal?.removeEventListener('abort', onAbort);
        settle(value);
      };
      this.#waiting.set(id, { resolve: done(resolve), reject: done(reject) });
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#child.send({ id, task, given });
    });
  }

  async stop() {
    this.#child.kill('SIGKILL'); // it holds nothing that needs an end
    await this.#ended;
    this.#ledger.remove(this.#child.pid);
  }
}

/** The other end: answers what it is asked with `tasks`, one entry per question. */
export function serve(tasks) {
  process.on('message', ({ id, task, given }) => {
    tasks[task](given).then(
      (result) => process.send({ id, result }),
      (error) => process.send({ id, error: error.stack ?? String(error) }),
    );
  });
  process.on('disconnect', () => process.exit());
  // Ctrl-C reaches the whole group: the parent stops us in its order.
  process.on('SIGINT', () => {});
}
