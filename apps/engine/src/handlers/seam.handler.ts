import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { Clock, CONFIG } from '@isthmus/chassis';
import { From, Handle } from '@isthmus/messaging';
import { type Caller, engine, type Output, type Parsed, WopError } from '@isthmus/protocol';
import type { Config } from '../config.js';
import { notFound } from '../driver/commands.js';
import { logicalInvocationId } from '../driver/invocation-id.js';
import { Invocations } from '../store/invocations.js';
import { RunLog } from '../store/run-log.js';

/** What a suite asks of the engine itself: to claim an effect, as its driver does. */
@Controller()
export class SeamHandler {
  constructor(
    private readonly log: RunLog,
    private readonly invocations: Invocations,
    private readonly clock: Clock,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  @Handle(engine.claimInvocation)
  async claim(
    @From() { tenant, workspace }: Caller,
    @Payload() { runId, nodeId, ordinal, providerKey }: Parsed<typeof engine.claimInvocation>,
  ): Promise<Output<typeof engine.claimInvocation>> {
    if (!this.config.OPENWOP_TEST_SEAM_ENABLED) throw new WopError('not_found', 'Test seams are off.');
    const page = await this.log.read(tenant, workspace, runId);
    if (!page) throw notFound();
    const invocationId = logicalInvocationId({ tenant, runId, nodeId, ordinal, providerKey });
    const key = { tenant, runId, nodeId, invocationId, attempt: 0, round: 0, epoch: page.run.epoch };
    const claimed = await this.invocations.claim(key, this.clock.date());
    return { invocationId, claimed: claimed.is };
  }
}
