import { type JSONRPCMessage, StreamableHTTPClientTransport, type TransportSendOptions } from '@modelcontextprotocol/client';
import { currentExchange, within } from './exchange.js';
import { STREAM_ENDED } from './failure.js';
import type { Fetch } from './remote-fetch.js';

/** What nobody waits for (a cancel notice) is given up after this. */
const NOTICE_MS = 5_000;
const END_SESSION_MS = 1_000;
/** Streamable HTTP whose streams live no longer than the exchange that opened them, and whose broken streams end it. */
export class RemoteTransport extends StreamableHTTPClientTransport {
  constructor(url: URL, fetch: Fetch) {
    super(url, {
      fetch,
      // A server that closes the stream of a call says when to come back for it. Nobody comes back for a call that is over.
      reconnectionScheduler: (reconnect, delayMs) => {
        const timer = setTimeout(reconnect, delayMs);
        const cancel = (): void => clearTimeout(timer);
        currentExchange()?.over.addEventListener('abort', cancel, { once: true });
        return cancel;
      },
    });
  }

  override send(message: JSONRPCMessage | JSONRPCMessage[], options: TransportSendOptions = {}): Promise<void> {
    const isRequest = 'method' in message && 'id' in message;
    if (!isRequest) return super.send(message, { ...options, requestSignal: AbortSignal.timeout(NOTICE_MS) });
    const exchange = currentExchange();
    if (!exchange) return super.send(message, options);
    const signals = [exchange.over, ...(options.requestSignal ? [options.requestSignal] : [])];
    return super.send(message, {
      ...options,
      requestSignal: AbortSignal.any(signals),
      // One turn later, so that a response that came on this stream is first.
      onRequestStreamEnd: () => setImmediate(() => this.#broke(message)),
    });
  }

  /** The SDK would wait on: the request is answered in the server's place. A probe has no ear for that (any error is a verdict on the era). */
  #broke(request: { readonly id: string | number; readonly method: string }): void {
    if (request.method === 'server/discover') void this.close();
    else this.onmessage?.({ jsonrpc: '2.0', id: request.id, error: { code: -32603, message: 'The stream ended.', data: STREAM_ENDED } });
  }

  /** Tells a server with sessions that this one is done with, and closes; waits for neither a slow nor a dead server. */
  async leave(): Promise<void> {
    const told = within(undefined, () => this.terminateSession()).catch(() => undefined);
    let timer: NodeJS.Timeout | undefined;
    const enough = new Promise((resolve) => {
      timer = setTimeout(resolve, END_SESSION_MS);
    });
    await Promise.race([told, enough]);
    clearTimeout(timer);
    await this.close();
  }
}
