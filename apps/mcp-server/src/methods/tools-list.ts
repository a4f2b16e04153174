import { Injectable } from '@nestjs/common';
import type { Call, Method } from '../call.js';
import { type Answer, invalidParams } from '../rpc.js';

@Injectable()
export class ToolsList implements Method {
  readonly name = 'tools/list';

  async answer({ catalog, params: { cursor } }: Call): Promise<Answer> {
    if (cursor !== undefined && typeof cursor !== 'string') throw invalidParams('The cursor is a text that this server gave out.');
    return (await catalog()).page(cursor);
  }
}
