import { BELLS, WopError } from '@isthmus/protocol';
import type { Exchange } from './exchange.js';

/** The calls this process has under way, by the bell that ends them. */
export class InFlight {
  readonly #exchanges = new Map<string, Set<Exchange>>();

  /** @returns takes it out again */
  add(invocationId: string, exchange: Exchange): () => void {
    const subject = BELLS.abandon.subject(invocationId);
    const same = this.#exchanges.get(subject) ?? new Set();
    this.#exchanges.set(subject, same.add(exchange));
    return () => {
      same.delete(exchange);
      if (same.size === 0 && this.#exchanges.get(subject) === same) this.#exchanges.delete(subject);
    };
  }

  /** `subject` rang: whoever works on that invocation stops, and the remote server is told. */
  abandon(subject: string): void {
    for (const exchange of this.#exchanges.get(subject) ?? []) exchange.stop(abandoned());
  }
}

const abandoned = (): WopError =>
  new WopError('mcp_tool_invocation_failed', 'The call was abandoned: nobody waits for its result any more.', { reason: 'abandoned' });
