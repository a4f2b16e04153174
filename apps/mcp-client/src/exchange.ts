import { AsyncLocalStorage } from 'node:async_hooks';
import { setMaxListeners } from 'node:events';
import { WopError } from '@isthmus/protocol';

/** A peer that never gives a result gets no more requests than this for one call. (rulings, "MCP client") */
export const MAX_REQUESTS = 12;

/**
 * What we do with a remote server to answer one question: it may take several requests, and it ends as one, whether by a
 * result, its deadline, an abandon bell or a fault of the peer. Everything that is sent finds its exchange in the async context.
 */
export class Exchange {
  readonly #stopping = new AbortController();
  readonly #over = new AbortController();
  readonly #deadline: NodeJS.Timeout;
  #requests = 0;
  /** The call itself has left for the server: from then on a failure leaves its outcome unknown. */
  isSent = false;
  /** What was sent may be sent again although its outcome is unknown. */
  mayRepeat = false;
  /** Asked for each request at the moment a socket is ready for it; an answer keeps it from being written. */
  beforeWrite: () => WopError | undefined = () => undefined;

  constructor(timeoutMs: number) {
    // A few for each request, and those are counted.
    setMaxListeners(0, this.stopping, this.over);
    this.#deadline = setTimeout(() => this.stop(timedOut(timeoutMs, this.isSent)), timeoutMs);
  }

  /** Aborted, with a WopError as reason, when the exchange must end without a result. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Aborted when nobody waits for anything of it any more: streams that are still open are closed. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  stop(reason: WopError): void {
    this.#stopping.abort(reason);
  }

  end(): void {
    clearTimeout(this.#deadline);
    this.#over.abort();
  }

  /** @throws WopError when the peer has had its share of requests */
  spend(): void {
    this.#requests += 1;
    if (this.#requests > MAX_REQUESTS)
      throw disconnected('The remote MCP server gives no result.', { reason: 'too_many_requests', sent: this.isSent });
  }

  /** A result came: the peer is not failing, long lists may go on. */
  gotResult(): void {
    this.#requests = 0;
  }

  /** `work`, or the reason to stop, whichever is first. */
  async orStop<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#stopping;
    let onAbort: () => void = () => undefined;
    const stopped = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason as WopError);
      if (signal.aborted) onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
    });
    work.catch(() => undefined);
    try {
      return await Promise.race([stopped, work]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}

const exchanges = new AsyncLocalStorage<Exchange | undefined>();

export const currentExchange = (): Exchange | undefined => exchanges.getStore();

/** Runs `work` as a part of `exchange`, up to its end. */
export const within = <T>(exchange: Exchange | undefined, work: () => T): T => exchanges.run(exchange, work);

export const disconnected = (message: string, details: { reason: string; sent: boolean }, cause?: unknown): WopError =>
  new WopError('mcp_server_disconnected', message, details, { cause });

const timedOut = (timeoutMs: number, sent: boolean): WopError =>
  disconnected(`The remote MCP server gave no result within ${timeoutMs} ms.`, { reason: 'timeout', sent });
