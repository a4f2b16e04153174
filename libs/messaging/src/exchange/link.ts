import { WopError } from '@isthmus/protocol';
import type { NatsConnection } from '@nats-io/transport-node';
import { decodeFrame, encodeFrame, type Frame, type FrameKind } from './frames.js';

/** Beats that may be missed before the far end counts as gone. (architecture §6: noticed within 3 s) */
const MISSED_BEATS = 3;

type Events = { readonly frame: (frame: Frame) => void; readonly lost: (error: WopError) => void };

/**
 * One end of an exchange as both sides need it: numbers what goes out, checks the numbers of what comes in, says that it is
 * alive and notices when the far end is not. Frames after `close` are dropped: whoever ends the exchange second is late.
 */
export class Link {
  private peer: string | undefined;
  private sent = 0;
  private received = 0;
  private closed = false;
  private lost = false;
  private beats: NodeJS.Timeout | undefined;
  private silence: NodeJS.Timeout | undefined;

  constructor(
    private readonly connection: NatsConnection,
    private readonly beatMs: number,
    private readonly events: Events,
  ) {}

  get isOpen(): boolean {
    return !this.closed;
  }
  get hasPeer(): boolean {
    return this.peer !== undefined;
  }

  /** From now on the far end must be heard of. */
  listen(): void {
    this.silence ??= setTimeout(() => this.lose('The far end of the exchange fell silent.'), this.beatMs * MISSED_BEATS).unref();
  }

  /** Names the far end's inbox. */
  address(subject: string): void {
    this.peer = subject;
  }

  /** From now on the far end hears of us at least every beat. */
  beat(): void {
    this.beats ??= setInterval(() => this.post('beat'), this.beatMs).unref();
  }

  post(kind: FrameKind, payload?: Uint8Array): void {
    if (this.closed || this.peer === undefined) return;
    try {
      this.connection.publish(this.peer, encodeFrame(kind, this.sent++, payload));
    } catch (cause) {
      this.lose('The connection of the exchange is closed.', cause);
    }
  }

  take(bytes: Uint8Array): void {
    if (this.closed) return;
    const frame = decodeFrame(bytes);
    if (frame?.number !== this.received) {
      this.lose('A part of the exchange was lost on the way.');
      return;
    }
    this.received++;
    this.silence?.refresh();
    this.events.frame(frame);
  }

  lose(message: string, cause?: unknown): void {
    if (this.closed || this.lost) return;
    this.lost = true;
    this.events.lost(new WopError('service_unavailable', message, undefined, { cause }));
  }

  close(): void {
    this.closed = true;
    clearInterval(this.beats);
    clearTimeout(this.silence);
  }
}
