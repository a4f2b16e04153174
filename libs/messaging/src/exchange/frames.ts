/**
 * What travels between the two ends of an exchange, as bytes. Pure.
 *
 * The opening message goes to the pool's queue group: the request's head, and its body when that is small. Everything after
 * it is a frame on a private inbox: one byte of kind, four of number, the payload. Each direction counts its frames from 0,
 * so a lost one is a gap and ends the exchange. (architecture §6 "One tunnel")
 */

/** Bytes that may be under way in one direction before the reader has taken them. */
export const WINDOW_BYTES = 256 * 1024;
/** A body up to this size rides in the opening message, or in the one frame that answers it. */
export const INLINE_BYTES = WINDOW_BYTES;
/** Largest piece of a body in one frame: far below NATS max_payload, and several fit into a window. */
export const PIECE_BYTES = 64 * 1024;

export type Headers = readonly (readonly [string, string])[];
/** `body`: none, inside the opening message, or as frames once the replica has accepted. */
export type RequestHead = {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: 'none' | 'inline' | 'frames';
  /** How often each end says that it is alive. */
  readonly beatMs: number;
};
export type ResponseHead = { readonly status: number; readonly headers: Headers };

const KINDS = ['accept', 'head', 'data', 'end', 'whole', 'fail', 'beat', 'credit', 'cancel'] as const;
/**
 * `accept` names the replica's inbox · `head`, `data`, `end` a response in pieces, `whole` all of it at once · `fail` the error
 * that took its place, or that made the gateway give up · `beat` nothing but life · `credit` bytes the reader has taken ·
 * `cancel` the asker is gone.
 */
export type FrameKind = (typeof KINDS)[number];
export type Frame = { readonly kind: FrameKind; readonly number: number; readonly payload: Uint8Array };

const HEADER_BYTES = 5;
const EMPTY = new Uint8Array(0);
const text = new TextEncoder();
const utf8 = new TextDecoder();

export function encodeFrame(kind: FrameKind, number: number, payload: Uint8Array = EMPTY): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES + payload.length);
  bytes[0] = KINDS.indexOf(kind);
  view(bytes).setUint32(1, number);
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

/** @returns undefined for bytes that are no frame */
export function decodeFrame(bytes: Uint8Array): Frame | undefined {
  const kind = bytes.length >= HEADER_BYTES ? KINDS[bytes[0] as number] : undefined;
  return kind && { kind, number: view(bytes).getUint32(1), payload: bytes.subarray(HEADER_BYTES) };
}

/** A JSON head and raw bytes behind it: the opening message, and the payload of `whole`. */
export function encodeHeaded(head: RequestHead | ResponseHead, body: Uint8Array = EMPTY): Uint8Array {
  const json = text.encode(JSON.stringify(head));
  const bytes = new Uint8Array(4 + json.length + body.length);
  view(bytes).setUint32(0, json.length);
  bytes.set(json, 4);
  bytes.set(body, 4 + json.length);
  return bytes;
}

export function decodeHeaded<H extends RequestHead | ResponseHead>(bytes: Uint8Array): { head: H; body: Uint8Array } {
  const length = view(bytes).getUint32(0);
  return { head: decodeJson(bytes.subarray(4, 4 + length)) as H, body: bytes.subarray(4 + length) };
}

export const encodeJson = (value: unknown): Uint8Array => text.encode(JSON.stringify(value));
export const decodeJson = (bytes: Uint8Array): unknown => JSON.parse(utf8.decode(bytes));
export const encodeText = (value: string): Uint8Array => text.encode(value);
export const decodeText = (bytes: Uint8Array): string => utf8.decode(bytes);
export function encodeCount(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  view(bytes).setUint32(0, value);
  return bytes;
}
export const decodeCount = (bytes: Uint8Array): number => view(bytes).getUint32(0);

/** `bytes` in pieces that fit into a frame. */
export function* pieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

const view = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
