// One child process that is kept alive.
import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const FIRST_DELAY = 200;
const LONGEST_DELAY = 5_000;
const HEALTHY_AFTER = 5_000;
const GIVE_UP_AFTER = 6; // exits in a row before a first start is called a failure

/**
 * @typedef {object} Plan
 * @property {string} name      `engine-1`, `postgres`
 * @property {string} service   `engine`, `postgres`
 * @property {() => object | Promise<object>} launch    what to spawn: { command, args, …options of spawn }; asked again at every restart
 * @property {() => Promise<boolean>} isReady
 * @property {NodeJS.Signals} [stopSignal]   SIGTERM
 * @property {number} [grace]   how long it may take to stop (ms)
 * @property {string} [logFile]
 * @property {number} [attempts]   exits tolerated before a first start is called a failure
 */
export class Supervised {
  #plan;
  #watch;
  #child;
  #log;
  #lines = [];
  #delay = 0;
  #exits = 0;
  #restart;
  #isStopping = false;
  #isReady = false;

  /** `watch` hears of everything: { started(process), ended(process), line(process, stream, text), ledger } */
  constructor(plan, watch = {}) {
    this.#plan = plan;
    this.#watch = watch;
  }

  get name() {
    return this.#plan.name;
  }

  get service() {
    return this.#plan.service;
  }

  get pid() {
    return this.#child?.pid;
  }

  get isReady() {
    return this.#isReady;
  }

  /** Resolves when it is ready; from then on it is restarted whenever it ends. */
  async start() {
    this.#isStopping = false;
    this.#exits = 0;
    this.#delay = 0;
    if (this.#plan.logFile) this.#log ??= createWriteStream(this.#plan.logFile);
    await this.#spawn();
    await this.ready();
  }

  async ready(limit = 90_000) {
    for (const end = Date.now() + limit; !this.#isReady; await sleep(20)) {
      if (this.#isStopping) return;
      if (this.#exits < (this.#plan.attempts ?? GIVE_UP_AFTER) && Date.now() < end) continue;
      const why = this.#exits ? `ended ${this.#exits} times before it was ready` : `was not ready after ${limit / 1000} s`;
      await this.stop();
      throw new Error(`${this.name} ${why}\n${this.#lines.join('\n')}`);
    }
  }

  /** The process gets a signal and, if it dies of it, is restarted like after any other end. */
  signal(name) {
    if (this.#child) kill(this.#child.pid, name);
  }

  /** Ends it for good (until `start`). */
  async stop() {
    this.#isStopping = true;
    clearTimeout(this.#restart);
    const child = this.#child;
    if (child) {
      const ended = new Promise((resolve) => child.once('close', resolve));
      kill(child.pid, 'SIGCONT'); // a stopped process hears nothing else
      kill(child.pid, this.#plan.stopSignal ?? 'SIGTERM');
      const timer = setTimeout(() => kill(-child.pid, 'SIGKILL'), this.#plan.grace ?? 10_000);
      await ended;
      clearTimeout(timer);
    }
    await new Promise((resolve) => (this.#log ? this.#log.end(resolve) : resolve()));
    this.#log = undefined;
  }

  async #spawn() {
    const { command, args, ...options } = await this.#plan.launch();
    if (this.#isStopping) return;
    // A process group of its own: Ctrl-C goes to the supervisor alone, which then stops everything in order.
    const child = spawn(command, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of ['stdout', 'stderr']) {
      createInterface({ input: child[stream], crlfDelay: Number.POSITIVE_INFINITY }).on('line', (text) => this.#line(stream, text));
    }
    child.once('error', (error) => this.#line('stderr', error.message));
    child.once('close', (code, signal) => this.#ended(child, code, signal));
    if (child.pid === undefined) return; // could not be spawned: 'error' and 'close' follow
    this.#child = child;
    this.#watch.ledger?.add(this.service, child.pid);
    this.#watch.started?.(this);
    void this.#awaitHealth(child);
  }

  async #awaitHealth(child) {
    while (this.#child === child && !(await this.#plan.isReady().catch(() => false))) await sleep(30);
    if (this.#child !== child) return;
    this.#isReady = true;
    this.#exits = 0;
    this.#watch.ready?.(this);
    await sleep(HEALTHY_AFTER, undefined, { ref: false });
    if (this.#child === child) this.#delay = 0;
  }

  #ended(child, code, signal) {
    this.#isReady = false;
    this.#child = undefined;
    this.#exits += 1;
    if (child.pid !== undefined) {
      kill(-child.pid, 'SIGKILL'); // what it started itself goes with it
      this.#watch.ledger?.remove(child.pid);
    }
    this.#watch.ended?.(this, { code, signal, isExpected: this.#isStopping });
    if (this.#isStopping) return;
    this.#restart = setTimeout(() => void this.#spawn(), this.#delay);
    this.#delay = Math.min(Math.max(FIRST_DELAY, this.#delay * 2), LONGEST_DELAY);
  }

  #line(stream, text) {
    this.#log?.write(`${text}\n`);
    this.#lines.push(text);
    if (this.#lines.length > 20) this.#lines.shift();
    this.#watch.line?.(this, stream, text);
  }
}

function kill(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
