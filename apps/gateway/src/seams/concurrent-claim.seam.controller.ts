import { Controller, UseGuards } from '@nestjs/common';
import { Bus } from '@isthmus/messaging';
import { engine } from '@isthmus/protocol';
import type { Asker } from '../auth/asker.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';
import { SeamGuard } from './seam.guard.js';
import { SEAMS } from './seams.js';
import { Stage } from './stage.js';

/**
 * One effect of one run, claimed by many at once. Each claim is a message of its own, so engines that run side by side take part;
 * each makes the id for itself; who is told `fresh` is who would send. (spec/seams.md §7)
 */
@Controller()
@UseGuards(SeamGuard)
export class ConcurrentClaimSeamController {
  constructor(
    private readonly bus: Bus,
    private readonly stage: Stage,
  ) {}

  @Route(SEAMS.concurrentClaim)
  async claim(@Ask() { body }: Asked<typeof SEAMS.concurrentClaim>, @By() { passport }: Asker) {
    const runId = await this.stage.run(passport, 'seam.concurrent-claim', { typeId: 'core.noop' });
    const effect = { runId, nodeId: 'node', ordinal: 0, providerKey: 'seam' };
    const claims = await Promise.all(
      Array.from({ length: body.executors }, () => this.bus.call(engine.claimInvocation, effect, { passport })),
    );
    const mintedIds = claims.map(({ invocationId }) => invocationId);
    return {
      logicalInvocationId: mintedIds[0],
      mintedIds,
      attempted: claims.length,
      delivered: claims.filter(({ claimed }) => claimed === 'fresh').length,
    };
  }
}
