import { EXCHANGE, HEADERS, isWopError, WopError } from '@isthmus/protocol';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import {
  decodeCount,
  decodeHeaded,
  encodeCount,
  encodeFrame,
  encodeHeaded,
  encodeJson,
  encodeText,
  type Frame,
  type FrameKind,
  type Headers,
  INLINE_BYTES,
  type RequestHead,
  type ResponseHead,
  WINDOW_BYTES,
} from './frames.js';
import { gather } from './gather.js';
import { type Inbox, Inboxes } from './inboxes.js';
import { Link } from './link.js';
import { sendBody, sendChunk } from './outflow.js';
import { inTraceOf } from './trace.js';
import { Inflow, SendWindow } from './window.js';

/** A request as it came through the tunnel. Not a fetch `Request`: making one costs more than carrying it. */
export type TunnelledRequest = {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  /** The whole body where it was small, else a stream of it. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array> | undefined;
};
/** A response that is known as a whole: cheaper than a fetch `Response`. */
export type WholeResponse = { readonly status: number; readonly headers: Headers; readonly body?: Uint8Array };

export type ExchangeContext = {
  readonly passport: string;
  /** Aborted when nobody waits for the answer any more; `wasCancelled` tells why. */
  readonly signal: AbortSignal;
  /** Aborted when this replica is about to stop: long waits should end with an answer soon. */
  readonly draining: AbortSignal;
};
export type ExchangeHandler = (request: TunnelledRequest, context: ExchangeContext) => Promise<Response | WholeResponse>;

export type ExchangeServer = {
  readonly inFlight: () => number;
  /** Takes no new exchange, lets those under way finish for at most `graceMs`, then ends them. */
  readonly drain: (graceMs: number) => Promise<void>;
};

/** Time in which most answers are there: until then no `accept` is sent, so that a quick exchange is two messages. */
const ACCEPT_AFTER_MS = 25;

/** Why the signal of an exchange was aborted. A dying replica or gateway is not a client that went away. (rulings "MCP mount") */
class ExchangeOver extends Error {
  constructor(readonly why: 'cancelled' | 'lost' | 'stopped') {
    super(`The exchange is over: ${why}.`);
  }
}

/** One of each for all: an error with a stack at the end of every exchange costs. */
const OVER = { cancelled: new ExchangeOver('cancelled'), lost: new ExchangeOver('lost'), stopped: new ExchangeOver('stopped') } as const;

/** True when the asker itself gave the exchange up. */
export const wasCancelled = (signal: AbortSignal): boolean =>
  signal.aborted && signal.reason instanceof ExchangeOver && signal.reason.why === 'cancelled';

/** Takes exchanges of `pool`, shared with its other replicas. Resolves when the subscription stands. */
export async function serveExchanges(
  connection: NatsConnection,
  pool: string,
  handler: ExchangeHandler,
  { maxInFlight = 1_000 }: { maxInFlight?: number } = {},
): Promise<ExchangeServer> {
  const open = new Set<Served>();
  const draining = new AbortController();
  let idle: (() => void) | undefined;
  const closed = (served: Served) => {
    open.delete(served);
    if (open.size === 0) idle?.();
  };
  const take = (message: Msg): void => {
    const isFull = open.size >= maxInFlight;
    const served = isFull ? undefined : Served.from(connection, message, draining.signal, closed);
    if (served) {
      open.add(served);
      void inTraceOf(message.headers, () => served.run(handler));
    } else {
      const refusal = isFull
        ? new WopError('service_unavailable', 'This replica has as much to do as it may.')
        : new WopError('internal_error', 'The exchange could not be read.');
      message.respond(encodeFrame('fail', 0, encodeJson(refusal.toEnvelope())));
    }
  };
  const subscription = connection.subscribe(EXCHANGE.open(pool), {
    queue: EXCHANGE.queue(pool),
    callback: (error, message) => {
      if (!error && message.reply) take(message);
    },
  });
  Inboxes.on(connection);
  await connection.flush();
  return {
    inFlight: () => open.size,
    async drain(graceMs) {
      if (!connection.isClosed()) await subscription.drain();
      draining.abort();
      if (open.size === 0) return;
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        idle = resolve;
        timer = setTimeout(resolve, graceMs);
      });
      clearTimeout(timer);
      for (const served of [...open]) served.stop();
      if (!connection.isClosed()) await connection.flush();
    },
  };
}

/** The replica's end of one exchange. */
class Served {
  private readonly link: Link;
  private readonly inbox: Inbox;
  private readonly window = new SendWindow(WINDOW_BYTES);
  private readonly inflow: Inflow;
  private readonly gone = new AbortController();
  private acceptLater: NodeJS.Timeout | undefined;
  private accepted = false;

  static from(connection: NatsConnection, message: Msg, draining: AbortSignal, closed: (served: Served) => void): Served | undefined {
    try {
      const { head, body } = decodeHeaded<RequestHead>(message.data);
      return new Served(connection, message.reply as string, head, body, message.headers?.get(HEADERS.passport) ?? '', draining, closed);
    } catch {
      return undefined;
    }
  }

  private constructor(
    connection: NatsConnection,
    reply: string,
    private readonly head: RequestHead,
    private readonly inline: Uint8Array,
    private readonly passport: string,
    private readonly draining: AbortSignal,
    private readonly closed: (served: Served) => void,
  ) {
    this.link = new Link(connection, head.beatMs, { frame: (frame) => this.on[frame.kind]?.(frame), lost: (error) => this.lost(error) });
    this.link.address(reply);
    this.inbox = Inboxes.on(connection).claim({
      message: (message) => this.link.take(message.data),
      lost: (error) => this.link.lose('The connection of the exchange is closed.', error),
    });
    this.inflow = new Inflow(
      WINDOW_BYTES,
      (bytes) => this.link.post('credit', encodeCount(bytes)),
      () => undefined,
    );
  }

  async run(handler: ExchangeHandler): Promise<void> {
    if (this.head.body === 'frames') this.accept();
    else this.acceptLater = setTimeout(() => this.accept(), ACCEPT_AFTER_MS);
    const { method, url, headers, body } = this.head;
    try {
      const request = { method, url, headers, body: body === 'inline' ? this.inline : body === 'frames' ? this.inflow : undefined };
      const response = await handler(request, { passport: this.passport, signal: this.gone.signal, draining: this.draining });
      await (response instanceof Response ? this.sendResponse(response) : this.sendWhole(response));
      this.finish();
    } catch (error) {
      this.failed(error);
    }
  }

  /** Ends it from this side: the replica stops. */
  stop(): void {
    this.link.post('fail', encodeJson(new WopError('service_unavailable', 'The replica stops.').toEnvelope()));
    this.finish('stopped');
  }

  private readonly on: { readonly [K in FrameKind]?: (frame: Frame) => void } = {
    data: ({ payload }) => {
      if (!this.inflow.push(payload)) this.link.lose('The far end of the exchange sent more than it was allowed to.');
    },
    end: () => this.inflow.end(),
    credit: ({ payload }) => this.window.give(decodeCount(payload)),
    cancel: () => this.finish('cancelled'),
    fail: () => this.finish('lost'),
  };

  /** Names our inbox; from here on both ends watch each other. */
  private accept(): void {
    if (this.accepted) return;
    this.accepted = true;
    clearTimeout(this.acceptLater);
    this.link.post('accept', encodeText(this.inbox.subject));
    this.link.beat();
    this.link.listen();
  }

  private async sendWhole({ status, headers, body }: WholeResponse): Promise<void> {
    if (!body || body.length <= INLINE_BYTES) return this.link.post('whole', encodeHeaded({ status, headers }, body));
    this.sendHead({ status, headers });
    await sendChunk(this.link, this.window, body);
    this.link.post('end');
  }

  /** In one frame what is there at once; the rest as it comes. */
  private async sendResponse(response: Response): Promise<void> {
    const head = { status: response.status, headers: [...response.headers] };
    const source = response.body?.getReader();
    if (!source) return this.sendWhole(head);
    this.gone.signal.addEventListener('abort', () => source.cancel(this.gone.signal.reason).catch(() => undefined), { once: true });
    const { ready, rest } = await gather(source, INLINE_BYTES);
    const known = Buffer.concat(ready);
    if (!rest) return this.sendWhole({ ...head, body: known });
    this.sendHead(head);
    await sendChunk(this.link, this.window, known);
    await sendBody(this.link, this.window, rest);
  }

  private sendHead(head: ResponseHead): void {
    this.accept();
    this.link.post('head', encodeHeaded(head));
  }

  private lost(error: WopError): void {
    this.link.post('fail', encodeJson(error.toEnvelope()));
    this.finish('lost');
  }

  private failed(error: unknown): void {
    if (!this.link.isOpen) return;
    const known = isWopError(error)
      ? error
      : new WopError('internal_error', 'The request could not be answered.', undefined, { cause: error });
    this.link.post('fail', encodeJson(known.toEnvelope()));
    this.finish();
  }

  private finish(why?: ExchangeOver['why']): void {
    if (!this.link.isOpen) return;
    this.link.close();
    this.inbox.close();
    clearTimeout(this.acceptLater);
    const over = OVER[why ?? 'stopped'];
    this.window.close(over);
    this.inflow.fail(over);
    if (why) this.gone.abort(over);
    this.closed(this);
  }
}
