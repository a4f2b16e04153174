import { setTimeout as pause } from 'node:timers/promises';
import type { RunEvent } from '@isthmus/protocol';
import { type Answer, type Client, isOver, Refused } from './client.js';

/** What a client sees of a host whose parts are being killed: no connection, a broken one, or 503. */
const CONNECTION = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
const RETRY_MS = 50;

type Job = (n: number) => Promise<void>;

/**
 * Steady work from outside: each kind of job is done over and over, one after the other, until it is told to stop. A job does not
 * give up; whatever it meets besides the outages that are allowed is a problem.
 */
export class Load {
  readonly problems: string[] = [];
  readonly outages = new Map<string, number>();
  /** Runs that were accepted, by the kind of job that started them. */
  readonly accepted = new Map<string, string>();
  readonly #done = new Map<string, number>();
  readonly #workers: Promise<void>[] = [];
  #isStopping = false;
  #wake: () => void = () => undefined;

  add(kind: string, job: Job): void {
    this.#done.set(kind, 0);
    this.#workers.push(this.#work(kind, job));
  }

  /** Resolves when every kind of job was done `times` more often than now. */
  async progress(times: number): Promise<void> {
    const wanted = new Map([...this.#done].map(([kind, done]) => [kind, done + times]));
    while ([...wanted].some(([kind, done]) => (this.#done.get(kind) ?? 0) < done) && this.problems.length === 0)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
  }

  /** Every job that has begun is finished. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#workers);
  }

  /** Asks until there is an answer; a 503 is none. */
  async persist<A extends Pick<Answer, 'status' | 'text'>>(what: string, ask: () => Promise<A>): Promise<A> {
    for (;;) {
      const answer = await ask().catch((error: unknown) => this.#outage(what, error));
      if (answer && answer.status !== 503) return answer;
      if (answer) this.#count(`${what}: 503`);
      await pause(RETRY_MS);
    }
  }

  /** Starts a run under a key, until that is answered. */
  async start(kind: string, client: Client, n: number, workflowId: string, inputs: object): Promise<string> {
    const sent = { body: { workflowId, inputs }, headers: { 'idempotency-key': `${kind}-${n}` } };
    const { status, text } = await this.persist('create', () => client.ask('POST', '/v1/runs', sent));
    if (status !== 201) throw new Error(`create answered ${status}: ${text}`);
    const { runId } = JSON.parse(text) as { runId: string };
    this.accepted.set(runId, kind);
    return runId;
  }

  /** Follows a run to its end over however many connections that takes; sees that nothing comes twice and nothing is left out. */
  async follow(client: Client, runId: string, on: (event: RunEvent) => Promise<void> = async () => undefined): Promise<RunEvent[]> {
    const seen: RunEvent[] = [];
    const last = (): RunEvent | undefined => seen.at(-1);
    while (!isOver(last()?.type.slice('run.'.length) ?? '')) {
      const after = last();
      try {
        for await (const { data } of client.follow(runId, after ? { after: String(after.sequence) } : {})) {
          if (data.sequence !== seen.length) throw new Error(`run ${runId}: event ${seen.length} was due and ${data.sequence} came`);
          seen.push(data);
          await on(data);
        }
        if (last() === after) await pause(RETRY_MS);
      } catch (error) {
        this.#outage('stream', error);
        await pause(RETRY_MS);
      }
    }
    return seen;
  }

  async #work(kind: string, job: Job): Promise<void> {
    for (let n = 0; !this.#isStopping; n += 1) {
      try {
        await job(n);
        this.#done.set(kind, n + 1);
      } catch (error) {
        this.problems.push(`${kind} ${n}: ${error instanceof Error ? error.message : String(error)}`);
        this.#isStopping = true;
      }
      this.#wake();
    }
  }

  /** @throws what is no outage */
  #outage(what: string, error: unknown): undefined {
    const code = error instanceof Refused ? String(error.status) : (error as { cause?: { code?: string } }).cause?.code;
    if (code !== '503' && !CONNECTION.has(code ?? '')) throw error;
    this.#count(`${what}: ${code}`);
    return undefined;
  }

  #count(what: string): void {
    this.outages.set(what, (this.outages.get(what) ?? 0) + 1);
  }
}
