import { Injectable } from '@nestjs/common';
import type { Method } from '../call.js';
import { REVISIONS } from '../revisions.js';
import { type Answer, complete } from '../rpc.js';

const TTL_MS = 60_000;

/** What this server can do. Only what is built is declared; the rest answers 404/-32601. */
@Injectable()
export class Discover implements Method {
  readonly name = 'server/discover';
  private readonly result = new TextEncoder().encode(
    JSON.stringify(complete({ supportedVersions: REVISIONS, capabilities: { tools: {} }, ttlMs: TTL_MS, cacheScope: 'private' })),
  );

  async answer(): Promise<Answer> {
    return this.result;
  }
}
