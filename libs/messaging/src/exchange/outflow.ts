import { pieces } from './frames.js';
import type { Link } from './link.js';
import type { SendWindow } from './window.js';

/** Sends a body as fast as the far end takes it. Ends early, without a word, when the link is closed. */
export async function sendBody(link: Link, window: SendWindow, body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of body) await sendChunk(link, window, chunk);
  link.post('end');
}

export async function sendChunk(link: Link, window: SendWindow, chunk: Uint8Array): Promise<void> {
  for (const piece of pieces(chunk)) {
    await window.take(piece.length);
    link.post('data', piece);
  }
}
