import { Controller } from '@nestjs/common';
import { Handle } from '@isthmus/messaging';
import { engine, LIMITS, type Output } from '@isthmus/protocol';

/** What the engine honestly does: its part of the discovery document. A family that is not built is absent. */
@Controller()
export class DescribeHandler {
  @Handle(engine.describe)
  describe(): Output<typeof engine.describe> {
    return {
      service: 'engine',
      version: '0.1.0',
      discovery: {
        toolHooks: { supported: true, prePostEvents: true },
        extensions: { interrupts: { profiles: ['openwop-interrupt-quorum'], signedCallbackTokens: false } },
        limits: { maxNodeExecutions: LIMITS.maxNodeExecutions, maxRunDurationMs: LIMITS.maxRunDurationMs },
      },
    };
  }
}
