import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import type { OpenInterrupt } from '@isthmus/protocol';
import type { RunState } from './core/state.js';
import { mintToken, readToken, TOKEN_LIFE_MS, type TokenClaims } from './interrupt-token.js';
import type { RunRow } from './store/run-log.js';
import { TokenKeys } from './store/token-keys.js';

/** The tokens of an interrupt are equal for this long, so that a snapshot read twice is equal to the byte and keeps its ETag. (RFC 0115) */
const STEP_MS = 5 * 60_000;

/** Signed callback tokens: each resolves one interrupt, without another credential. (execution §3.3) */
@Injectable()
export class Tokens {
  constructor(
    private readonly keys: TokenKeys,
    private readonly clock: Clock,
  ) {}

  /** The interrupt with a token to answer it by. */
  async shown({ tenant, workspace, runId }: RunRow, state: RunState, open: OpenInterrupt): Promise<OpenInterrupt> {
    const { interruptId, nodeId } = open;
    const deadline = state.interrupts.get(interruptId)?.deadline ?? Number.POSITIVE_INFINITY;
    const expiresAt = Math.min(Math.floor(this.clock.now() / STEP_MS) * STEP_MS + TOKEN_LIFE_MS, deadline);
    const token = mintToken(await this.keys.signing(), { tenant, workspace, runId, nodeId, interruptId, expiresAt, intent: 'resolve' });
    return { ...open, interruptToken: token, callbackUrl: `/v1/interrupts/${token}` };
  }

  async read(token: string): Promise<TokenClaims> {
    return readToken(await this.keys.signing(), token, this.clock.now());
  }
}
