import type { Egress } from '@isthmus/egress';
import { isWopError } from '@isthmus/protocol';
import { request } from 'undici';
import { headersOf, type Message } from './signature.js';

/** (families §5) */
export const TIMEOUT_MS = 5_000;
/** An answer is only its status; what comes with it is not kept. */
const ANSWER_BYTES = 16 * 1_024;

export type Sent = { readonly is: 'delivered' } | { readonly is: 'failed'; readonly problem: string };

/**
 * Posts one signed message. Any 2xx is a delivery; everything else, a redirect too, is none. The problem is told in words that
 * hold nothing of the answer.
 */
export async function send(egress: Egress, url: string, secret: string, message: Message): Promise<Sent> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    // `request` follows no redirect, and the agent connects to the address that was judged. (authz.md §10)
    const { statusCode, body } = await request(url, {
      method: 'POST',
      headers: headersOf(message, secret),
      body: message.body,
      dispatcher: egress.agent,
      signal,
    });
    await body.dump({ limit: ANSWER_BYTES, signal }).catch(() => undefined);
    return statusCode >= 200 && statusCode < 300 ? { is: 'delivered' } : { is: 'failed', problem: `status ${statusCode}` };
  } catch (error) {
    return { is: 'failed', problem: problemOf(error, signal) };
  }
}

function problemOf(error: unknown, signal: AbortSignal): string {
  if (isWopError(error)) return 'address not allowed';
  return signal.aborted ? 'timeout' : 'no connection';
}
