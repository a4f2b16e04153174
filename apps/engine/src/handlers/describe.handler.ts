import { Controller } from '@nestjs/common';
import { Handle } from '@isthmus/messaging';
import { DRAIN_POLICIES, engine, LIMITS, type Output } from '@isthmus/protocol';

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
        replay: { supported: true, modes: ['replay', 'branch'], sideEffectSuppression: 'recorded-outcome' },
        runs: { pauseResume: { supported: true, drainPolicies: [...DRAIN_POLICIES] } },
        webhooks: { supported: true, signatureAlgorithms: ['v1'], durable: true },
        subWorkflow: { inputMapping: true },
        extensions: {
          interrupts: {
            profiles: [
              'openwop-interrupt-quorum',
              'openwop-interrupt-auth-required',
              'openwop-interrupt-external-event',
              'openwop-interrupt-cascade-cancel',
            ],
            signedCallbackTokens: true,
            // A run waits for its event as long as it may live.
            externalEventRetentionSeconds: LIMITS.maxRunDurationMs / 1_000,
          },
        },
        // Not the whole profile: nothing expires yet. The gateway adds the parts that are there.
        production: { supported: false },
        limits: { maxNodeExecutions: LIMITS.maxNodeExecutions, maxRunDurationMs: LIMITS.maxRunDurationMs },
      },
    };
  }
}
