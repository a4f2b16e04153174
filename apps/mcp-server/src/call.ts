import type { Caller, JsonObject } from '@isthmus/protocol';
import type { Catalog } from './catalog.js';
import type { CallerPassport } from './caller-passport.js';
import type { HeaderMap } from './header-agreement.js';
import type { Answer } from './rpc.js';

/** One request of a client, past every check that does not depend on its method. */
export type Call = {
  readonly caller: Caller;
  readonly passport: CallerPassport;
  readonly mount: string;
  /** The tools this caller may invoke; asked for at most once per request. */
  readonly catalog: () => Promise<Catalog>;
  readonly params: JsonObject;
  readonly meta: JsonObject;
  /** What the client declared for this request, and for no other. */
  readonly capabilities: JsonObject;
  readonly headers: HeaderMap;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** Aborted when this replica is about to stop. */
  readonly draining: AbortSignal;
};

/** An MCP method: one file in `methods/`, one line in its index. */
export interface Method {
  readonly name: string;
  answer(call: Call): Promise<Answer>;
}
