import type { Caller } from '@isthmus/protocol';

/** Who sent a request, with the passport that says so to the other services. */
export type Asker = {
  readonly caller: Caller;
  readonly passport: string;
  /**
   * The same credential, asked about again where the passport has run out or its rights have changed: for requests that
   * outlive a passport. Throws when the credential is no longer good.
   */
  readonly renew: () => Promise<Asker>;
};
