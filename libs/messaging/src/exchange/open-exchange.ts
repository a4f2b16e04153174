import { type ErrorEnvelope, EXCHANGE, fromEnvelope, HEADERS, WopError } from '@isthmus/protocol';
import { type Msg, type NatsConnection, headers as natsHeaders } from '@nats-io/transport-node';
import {
  decodeCount,
  decodeHeaded,
  decodeJson,
  decodeText,
  encodeCount,
  encodeHeaded,
  type Frame,
  type FrameKind,
  type Headers,
  INLINE_BYTES,
  type ResponseHead,
  WINDOW_BYTES,
} from './frames.js';
import { type Inbox, Inboxes } from './inboxes.js';
import { Link } from './link.js';
import { sendBody } from './outflow.js';
import { injectTrace } from './trace.js';
import { Inflow, SendWindow } from './window.js';

export type ExchangeRequest = {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body?: Uint8Array | AsyncIterable<Uint8Array>;
  readonly passport: string;
  /** Until the response's head is here; a stream then lives as long as both ends want it. */
  readonly deadlineMs?: number;
  /** Aborted when the asker is gone: the far end hears it as `cancel`. */
  readonly signal?: AbortSignal;
  readonly heartbeatMs?: number;
};

/** `body` must be read to its end or given up (by `return` or the signal): until then the exchange stays open. */
export type ExchangeReply = {
  readonly status: number;
  readonly headers: [string, string][];
  readonly body: AsyncIterable<Uint8Array>;
  /** The whole body, where it arrived in one frame. */
  readonly whole?: Uint8Array;
};

const HEARTBEAT_MS = 1_000;

/** Carries one HTTP exchange to a replica of `pool`. Throws `service_unavailable` when none answers, at once or any more. */
export function openExchange(connection: NatsConnection, pool: string, request: ExchangeRequest): Promise<ExchangeReply> {
  return new Promise((resolve, reject) => new Opened(connection, request, resolve, reject).start(pool));
}

/** One for all: an error with a stack at the end of every exchange is 2 % of a busy gateway. */
const OVER = new Error('The exchange is over.');

/** The gateway's end of one exchange. */
class Opened {
  private readonly link: Link;
  private readonly inbox: Inbox;
  private readonly inflow: Inflow;
  private readonly window = new SendWindow(WINDOW_BYTES);
  private readonly beatMs: number;
  private cancelled = false;
  private deadline: NodeJS.Timeout | undefined;
  private readonly onAbort = () => this.cancel(this.request.signal?.reason);

  constructor(
    private readonly connection: NatsConnection,
    private readonly request: ExchangeRequest,
    private readonly resolve: (reply: ExchangeReply) => void,
    private readonly reject: (error: unknown) => void,
  ) {
    this.beatMs = request.heartbeatMs ?? HEARTBEAT_MS;
    this.link = new Link(connection, this.beatMs, { frame: (frame) => this.on[frame.kind]?.(frame), lost: (error) => this.fail(error) });
    this.inbox = Inboxes.on(connection).claim({
      message: (message) => this.hear(message),
      lost: (error) => this.link.lose('The connection of the exchange is closed.', error),
    });
    this.inflow = new Inflow(
      WINDOW_BYTES,
      (bytes) => this.link.post('credit', encodeCount(bytes)),
      () => this.cancel(new Error('The reader of the response went away.')),
    );
  }

  start(pool: string): void {
    const { method, url, headers, body, signal, passport, deadlineMs } = this.request;
    if (signal?.aborted) {
      this.fail(signal.reason);
      return;
    }
    signal?.addEventListener('abort', this.onAbort, { once: true });
    const inline = body instanceof Uint8Array && body.length <= INLINE_BYTES ? body : undefined;
    const head = { method, url, headers, beatMs: this.beatMs, body: inline ? 'inline' : body ? 'frames' : 'none' } as const;
    const natsHead = natsHeaders();
    natsHead.set(HEADERS.passport, passport);
    injectTrace(natsHead);
    if (deadlineMs !== undefined) {
      this.deadline = setTimeout(() => this.fail(new WopError('service_unavailable', 'No answer within the deadline.')), deadlineMs);
    }
    this.link.listen();
    try {
      this.connection.publish(EXCHANGE.open(pool), encodeHeaded(head, inline), { reply: this.inbox.subject, headers: natsHead });
    } catch (cause) {
      this.link.lose('The connection of the exchange is closed.', cause);
    }
  }

  private hear(message: Msg): void {
    // The server itself answers when nobody is subscribed. (NATS "no responders")
    if (message.data.length === 0 && message.headers?.code === 503) this.link.lose('No replica of the pool is there.');
    else this.link.take(message.data);
  }

  private readonly on: { readonly [K in FrameKind]?: (frame: Frame) => void } = {
    accept: ({ payload }) => {
      this.link.address(decodeText(payload));
      if (this.cancelled) {
        this.finish('cancel');
        return;
      }
      this.link.beat();
      if (this.request.body) this.sendRequestBody(this.request.body);
    },
    head: ({ payload }) => this.answer(decodeHeaded<ResponseHead>(payload).head),
    data: ({ payload }) => {
      if (!this.inflow.push(payload)) this.link.lose('The far end of the exchange sent more than it was allowed to.');
    },
    end: () => {
      this.inflow.end();
      this.finish();
    },
    whole: ({ payload }) => {
      const { head, body } = decodeHeaded<ResponseHead>(payload);
      if (body.length > 0) this.inflow.push(body);
      this.inflow.end();
      this.answer(head, body);
      this.finish();
    },
    fail: ({ payload }) => this.fail(fromEnvelope(decodeJson(payload) as ErrorEnvelope)),
    credit: ({ payload }) => this.window.give(decodeCount(payload)),
  };

  private answer({ status, headers }: ResponseHead, whole?: Uint8Array): void {
    clearTimeout(this.deadline);
    this.resolve({ status, headers: headers as [string, string][], body: this.inflow, ...(whole && { whole }) });
  }

  private sendRequestBody(body: Uint8Array | AsyncIterable<Uint8Array>): void {
    if (body instanceof Uint8Array && body.length <= INLINE_BYTES) return;
    const source = body instanceof Uint8Array ? once(body) : body;
    // A body that breaks off on the asker's side is an asker that is gone; after our own end there is nothing to tell.
    sendBody(this.link, this.window, source).catch((error) => this.cancel(error));
  }

  /** The asker is gone. Told to the replica when it has named its inbox, which may be later. */
  private cancel(because: unknown): void {
    if (!this.link.isOpen || this.cancelled) return;
    this.cancelled = true;
    this.end(because);
    if (this.link.hasPeer) this.finish('cancel');
  }

  /** Something broke on the way. The replica is told, but not that the asker is gone: the asker is still there. */
  private fail(error: unknown): void {
    this.end(error);
    this.finish('fail');
  }

  private end(because: unknown): void {
    this.reject(because);
    this.inflow.fail(because);
  }

  private finish(lastWord?: 'cancel' | 'fail'): void {
    if (lastWord) this.link.post(lastWord);
    this.link.close();
    this.inbox.close();
    this.window.close(OVER);
    clearTimeout(this.deadline);
    this.request.signal?.removeEventListener('abort', this.onAbort);
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
