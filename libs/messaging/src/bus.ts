import { currentCarrier } from '@isthmus/chassis';
import { type Contract, ErrorEnvelope, fromEnvelope, HEADERS, type Input, type Output, WopError } from '@isthmus/protocol';
import { createInbox, headers, type Msg, type MsgHdrs, type NatsConnection, NoRespondersError } from '@nats-io/transport-node';
import { Injectable } from '@nestjs/common';
import { Nats } from './nats.js';

export type CallOptions = {
  /** Of the caller on whose behalf this is asked; contracts that are not `internal` need one. */
  readonly passport?: string;
  /** Milliseconds to wait at most; the contract's own when absent. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
};

/** Nest only looks whether there is one: without an id a message is an event. NATS pairs the answers. */
const ID = '1';
/** A service that restarts is back within this: nobody was asked yet, so asking again is safe. */
const PATIENCE_MS = 3_000;
const RETRY_MS = 50;
/** A handler that tells it is alive at once and every second, and was silent for this long, is gone. */
const SILENCE_MS = 3_500;

/**
 * Calls contracts of other services. Speaks the wire form of Nest's NATS transport over one multiplexed inbox (Nest's own
 * client opens a subscription per request).
 */
@Injectable()
export class Bus {
  constructor(private readonly nats: Nats) {}

  /**
   * @throws WopError what the other service answered; `service_unavailable` when it is out of reach or too late
   */
  async call<C extends Contract>(contract: C, input: Input<C>, options: CallOptions = {}): Promise<Output<C>> {
    const deadlineMs = options.deadlineMs ?? contract.deadlineMs;
    const body = JSON.stringify({ id: ID, data: input });
    const connection = this.nats.connection();
    const watch = contract.heartbeat ? new Heartbeat(connection) : undefined;
    const head = headersOf(options.passport, deadlineMs, watch?.subject);
    try {
      const reply = await race(this.ask(connection, contract.subject, body, head, deadlineMs, watch), options.signal, watch?.silent);
      return answerOf<C>(reply, contract);
    } finally {
      watch?.stop();
    }
  }

  private async ask(
    connection: NatsConnection,
    subject: string,
    body: string,
    head: MsgHdrs,
    deadlineMs: number,
    watch: Heartbeat | undefined,
  ): Promise<Msg> {
    const patience = Math.min(PATIENCE_MS, deadlineMs);
    for (let waited = 0; ; waited += RETRY_MS) {
      try {
        const reply = connection.request(subject, body, { timeout: deadlineMs, headers: head });
        watch?.expect();
        return await reply;
      } catch (error) {
        watch?.rest();
        if (!isNoResponder(error) || waited >= patience) throw unavailable(subject, error);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }
}

/** Hears the handler's process at once and every second; `silent` rejects when it is not, or no longer, heard. */
class Heartbeat {
  readonly subject = createInbox();
  readonly silent: Promise<never>;
  private timer: NodeJS.Timeout | undefined;
  private asked = 0;
  private readonly stopListening: () => void;
  private fail: (error: Error) => void = () => undefined;

  constructor(private readonly connection: NatsConnection) {
    this.silent = new Promise<never>((_, reject) => {
      this.fail = reject;
    });
    this.silent.catch(() => undefined);
    const subscription = connection.subscribe(this.subject, { callback: () => this.heard() });
    this.stopListening = () => subscription.unsubscribe();
  }

  /**
   * A request went out. Whoever takes it may die before its first sound, and NATS before it hands it on: so silence counts from
   * when NATS has the request (or has lost its connection over it), not from the first sound.
   */
  expect(): void {
    const asked = ++this.asked;
    const isWaiting = (): boolean => asked === this.asked && this.timer === undefined;
    const begin = (): void => void (isWaiting() && this.heard());
    this.connection.flush().then(begin, begin);
  }

  /** Nobody has the request: silence means nothing. */
  rest(): void {
    this.asked += 1;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  stop(): void {
    this.rest();
    this.stopListening();
  }

  private heard(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(
      () => this.fail(new WopError('service_unavailable', 'The part of the host that was working on this went away.', { lost: true })),
      SILENCE_MS,
    );
  }
}

function headersOf(passport: string | undefined, deadlineMs: number, heartbeat: string | undefined): MsgHdrs {
  const head = headers();
  if (passport) head.set(HEADERS.passport, passport);
  if (heartbeat) head.set(HEADERS.heartbeat, heartbeat);
  head.set(HEADERS.deadline, String(deadlineMs));
  const { traceparent, tracestate } = currentCarrier();
  if (traceparent) head.set(HEADERS.traceparent, traceparent);
  if (tracestate) head.set(HEADERS.tracestate, tracestate);
  return head;
}

/** Replies come from our own services of the same or the previous version: unknown members are theirs to add. */
function answerOf<C extends Contract>(message: Msg, contract: C): Output<C> {
  const reply = message.json<{ err?: unknown; response?: unknown }>();
  if (reply.err !== undefined && reply.err !== null) {
    const envelope = ErrorEnvelope.safeParse(reply.err);
    throw envelope.success
      ? fromEnvelope(envelope.data)
      : new WopError('internal_error', `A part of the host failed (${contract.service}).`);
  }
  return reply.response as Output<C>;
}

async function race<T>(work: Promise<T>, signal: AbortSignal | undefined, silent: Promise<never> | undefined): Promise<T> {
  if (!signal && !silent) return work;
  work.catch(() => undefined);
  let stop: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    if (!signal) return;
    const abort = (): void =>
      reject(signal.reason instanceof Error ? signal.reason : new WopError('service_unavailable', 'The request was given up.'));
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    stop = () => signal.removeEventListener('abort', abort);
  });
  aborted.catch(() => undefined);
  try {
    return await Promise.race([work, aborted, ...(silent ? [silent] : [])]);
  } finally {
    stop();
  }
}

const isNoResponder = (error: unknown): boolean =>
  error instanceof NoRespondersError ||
  (error instanceof Error && error.cause instanceof NoRespondersError) ||
  (error as { name?: string })?.name === 'NoRespondersError';

function unavailable(subject: string, cause: unknown): WopError {
  const [, , service] = subject.split('.');
  const unanswered = isNoResponder(cause);
  return new WopError(
    'service_unavailable',
    `A part of the host (${service}) ${unanswered ? 'is not running' : 'did not answer in time'}. Try again.`,
    { retryAfter: 1, sent: !unanswered },
    { cause },
  );
}
