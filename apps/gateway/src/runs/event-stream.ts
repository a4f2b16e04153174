import { once } from 'node:events';
import { isWopError } from '@isthmus/protocol';
import type { FastifyReply } from 'fastify';
import type { Asker } from '../auth/asker.js';
import { Batches } from './batches.js';
import type { Page, Watcher } from './run-reader.js';
import { frame, KEEPALIVE, SSE_HEADERS, type Streamed } from './sse.js';
import type { Shows } from './stream-modes.js';

const KEEPALIVE_MS = 15_000;
/** A socket that holds back this much does not read: it is closed, and the client resumes where it was. (traps.md 17) */
const MAX_BUFFERED_BYTES = 1024 * 1024;
/** How long a client that catches up may take for one page. */
const DRAIN_TIMEOUT_MS = 30_000;

/** What goes out next, up to `next`; `more` is there already. */
export type StreamPage = Omit<Page, 'events'> & { readonly events: readonly Streamed[]; readonly more?: boolean };

type Reading = {
  readonly asker: Asker;
  readonly from: number;
  readonly shows: Shows;
  /** Reads a page with the rights of `asker`. */
  readonly read: (asker: Asker, from: number) => Promise<StreamPage>;
  /** Sends what it reads itself and nothing else: an offer only says that there is news. */
  readonly rereads?: boolean;
  /** How long events are gathered into one frame; 0 or absent: each goes by itself. */
  readonly bufferMs?: number | undefined;
};

/**
 * One client's stream of a run: first what it has missed, read with its own rights, then what the run's reader offers. It always
 * knows the next sequence it owes its client, so whatever is offered twice, late or with a hole goes out in order and once.
 */
export class EventStream implements Watcher {
  #asker: Asker;
  #next: number;
  #isReading = false;
  #isPoked = false;
  #isEnding = false;
  #isClosed = false;
  /** Only while someone waits for the client to read. */
  #waiting: AbortController | undefined;
  #failedRenewals = 0;
  #keepalive: NodeJS.Timeout | undefined;
  readonly #batches: Batches | undefined;

  constructor(
    private readonly reply: Pick<FastifyReply, 'raw' | 'hijack'>,
    private readonly reading: Reading,
    /** Called once, when nothing will be sent any more. */
    private readonly onClose: () => void,
  ) {
    this.#asker = reading.asker;
    this.#next = reading.from;
    this.#batches = reading.bufferMs ? new Batches(reading.bufferMs, (text) => this.#write(text)) : undefined;
    reply.raw.once('close', () => this.#close());
  }

  /**
   * Sends what the log holds so far. The head goes out with the first page, so that a refusal is still an HTTP error.
   * @returns the next sequence, from which on offers are awaited
   */
  async open(): Promise<number> {
    try {
      this.#isReading = true;
      const first = await this.reading.read(this.#asker, this.#next);
      if (this.#isClosed) return this.#next;
      this.reply.hijack();
      this.reply.raw.writeHead(200, SSE_HEADERS);
      await this.#catchUp(first);
      if (this.#isEnding) this.end();
      if (!this.#isClosed) {
        // A quiet run's stream has no frame yet, but its client waits for the head.
        this.reply.raw.flushHeaders();
        this.#keepalive = setInterval(() => this.#tick(), KEEPALIVE_MS);
      }
      return this.#next;
    } catch (error) {
      this.#close();
      throw error;
    }
  }

  offer(page: Page): void {
    if (this.#isClosed) return;
    if (this.#isReading) this.#isPoked = true;
    else if (this.reading.rereads ? page.next > this.#next : page.from > this.#next) void this.#catchUp();
    else if (!this.reading.rereads) this.#send(page);
  }

  abandon(): void {
    this.end();
  }

  /** Rights of the tenant changed: those of this client are asked for again, and the run with them. */
  recheck(): void {
    void this.#renew(() => true);
  }

  /** Without a terminal event a client comes back with `Last-Event-ID`. Before the head is out, its first page still goes. */
  end(): void {
    this.#isEnding = true;
    if (this.#isClosed || !this.reply.raw.headersSent) return;
    this.#batches?.flush();
    this.reply.raw.end();
    this.#close();
  }

  /** Reads on until the log has nothing newer. Whatever goes wrong ends the stream: the client resumes it. */
  async #catchUp(first?: StreamPage): Promise<void> {
    if (this.#isReading && !first) {
      this.#isPoked = true;
      return;
    }
    this.#isReading = true;
    try {
      for (let page = first; ; page = undefined) {
        if (!page) {
          this.#isPoked = false;
          page = await this.reading.read(this.#asker, this.#next);
        }
        this.#send(page);
        await this.#drained();
        if (this.#isClosed || !(page.more || this.#isPoked)) return;
      }
    } catch {
      this.end();
    } finally {
      this.#isReading = false;
    }
  }

  async #renew(isFinal: (error: unknown) => boolean): Promise<void> {
    try {
      const renewed = await this.#asker.renew();
      this.#failedRenewals = 0;
      if (renewed === this.#asker) return;
      this.#asker = renewed;
      await this.#catchUp();
    } catch (error) {
      if (isFinal(error)) this.end();
    }
  }

  #tick(): void {
    this.#write(KEEPALIVE);
    // A passport ends after a minute, and keys may expire without a revocation. While authz is away, one tick is forgiven.
    void this.#renew((error) => !(isWopError(error) && error.retriable) || ++this.#failedRenewals > 1);
  }

  #send({ events, next, isOver, more = false }: StreamPage): void {
    const fresh = events.filter((event) => event.sequence >= this.#next);
    const shown = fresh.filter((event) => this.reading.shows(event));
    this.#next = Math.max(this.#next, next);
    if (this.#batches) this.#batches.add(shown, more || isOver || fresh.some(isUrgent));
    else if (shown.length > 0) this.#write(shown.map(frame).join(''));
    if (isOver) this.end();
  }

  #write(text: string): void {
    if (this.#isClosed) return;
    this.reply.raw.write(text);
    // Who catches up is waited for; who is live is not.
    if (!this.#isReading && this.reply.raw.writableLength > MAX_BUFFERED_BYTES) this.reply.raw.destroy();
  }

  async #drained(): Promise<void> {
    if (this.#isClosed || !this.reply.raw.writableNeedDrain) return;
    this.#waiting = new AbortController();
    await once(this.reply.raw, 'drain', { signal: AbortSignal.any([AbortSignal.timeout(DRAIN_TIMEOUT_MS), this.#waiting.signal]) });
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#keepalive);
    this.#batches?.stop();
    this.#waiting?.abort();
    this.onClose();
  }
}

/** Someone is asked for something: that does not wait for company. (stream-modes.md, forced flush) */
const isUrgent = ({ type }: Streamed): boolean => type === 'node.suspended';
