import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { CONFIG } from '@isthmus/chassis';
import { WopError } from '@isthmus/protocol';
import type { FastifyRequest } from 'fastify';
import type { Config } from '../config.js';

/** The gate once more, inside: a seam that were mounted by mistake still answers nobody. (spec/seams.md §1, two controls) */
@Injectable()
export class SeamGuard implements CanActivate {
  constructor(@Inject(CONFIG) private readonly config: Config) {}

  canActivate(context: ExecutionContext): boolean {
    if (!this.config.OPENWOP_TEST_SEAM_ENABLED) throw new WopError('not_found', 'There is nothing at this path.');
    const { asker } = context.switchToHttp().getRequest<FastifyRequest>();
    if (!asker) throw new WopError('unauthenticated', 'This needs a credential: Authorization: Bearer <key>.');
    if (asker.caller.kind !== 'principal') throw new WopError('forbidden', 'This is for principals.');
    return true;
  }
}
