import { Inject, Injectable } from '@nestjs/common';
import { CONFIG, Logger } from '@isthmus/chassis';
import { Bell, Bus } from '@isthmus/messaging';
import { authz, BELLS, engine, type Input, type Json, type RunOutcome } from '@isthmus/protocol';
import type { Call } from './call.js';
import type { Config } from './config.js';

/** The engine waits this long for a new run itself, so that a call of a short one is one request. */
const HOLD_MS = 2_000;
/** A bell may be lost: look at least this often. */
const LOOK_MS = 1_000;

export type Start = Pick<Input<typeof engine.createRun>, 'workflowId' | 'inputs' | 'idempotency'>;

/** The runs behind tool calls: started, waited for, answered and cancelled through the engine's contracts. */
@Injectable()
export class Runs {
  constructor(
    private readonly bus: Bus,
    private readonly bell: Bell,
    private readonly logger: Logger,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** Not given up when the client goes away: what was begun must be known to be cancelled. */
  async start(call: Call, start: Start): Promise<{ runId: string; outcome: RunOutcome | undefined }> {
    const input = { ...start, transport: 'mcp', trust: 'untrusted', holdMs: Math.min(HOLD_MS, this.config.SLOW_RUN_MS) } as const;
    const { runId, settled } = await this.bus.call(engine.createRun, input, { passport: await call.passport.token() });
    return { runId, outcome: settled };
  }

  async outcome(call: Call, runId: string): Promise<RunOutcome> {
    const { outcome } = await this.bus.call(engine.readRun, { runId, want: ['outcome'] }, { passport: await call.passport.token() });
    if (!outcome) throw new Error('the engine was asked for an outcome and gave none');
    return outcome;
  }

  /**
   * Waits until the run has ended or waits for somebody: on its bell, with a look once a second. Gives `working` back when that
   * takes too long or this replica is about to stop. Throws when nobody wants to know any more.
   */
  async settle(call: Call, runId: string): Promise<RunOutcome> {
    const wait = new Wait(call, this.config.SLOW_RUN_MS);
    const stopListening = this.bell.listen(BELLS.run.subject(runId), () => wait.ring());
    try {
      for (;;) {
        const outcome = await this.outcome(call, runId);
        if (outcome.is !== 'working' || wait.isOver) return outcome;
        await wait.next();
      }
    } finally {
      stopListening();
      wait.stop();
    }
  }

  async resolve(call: Call, runId: string, interruptId: string, resumeValue: Json): Promise<void> {
    await this.bus.call(engine.resolveInterrupt, { runId, at: { interruptId }, resumeValue }, { passport: await call.passport.token() });
  }

  /**
   * Cancels a run that its request owns. That right comes with the request, not with `runs:cancel`: the host acts, as a service.
   * (spec/authz.md §7.4 "Disconnect")
   */
  async cancel({ caller: { tenant, workspace } }: Call, runId: string, reason: string): Promise<void> {
    const { token } = await this.bus.call(authz.delegate, {
      for: 'service',
      service: 'mcp-server',
      tenant,
      workspace,
      scopes: ['runs:cancel'],
    });
    await this.bus.call(engine.cancelRun, { runId, reason }, { passport: token });
  }

  /** As `cancel`, for when there is nobody left who could be told that it failed. */
  async abandon(call: Call, runId: string, reason: string): Promise<void> {
    try {
      await this.cancel(call, runId, reason);
    } catch (error) {
      this.logger.warn('a run whose request is gone could not be cancelled', { runId, error });
    }
  }
}

/** What a waiting call wakes up for: the bell, a second, its own end, or the end of this replica. */
class Wait {
  private rung = false;
  private wake: (() => void) | undefined;
  private failure: { readonly because: unknown } | undefined;
  private over = false;
  private readonly deadline: NodeJS.Timeout;
  private readonly onGone = () => this.fail(this.call.signal.reason);
  private readonly onDrain = () => this.end();

  constructor(
    private readonly call: Call,
    limitMs: number,
  ) {
    this.deadline = setTimeout(() => this.end(), limitMs);
    call.signal.addEventListener('abort', this.onGone, { once: true });
    call.draining.addEventListener('abort', this.onDrain, { once: true });
    if (call.signal.aborted) this.onGone();
    if (call.draining.aborted) this.onDrain();
  }

  get isOver(): boolean {
    return this.over;
  }

  ring(): void {
    this.rung = true;
    this.wake?.();
  }

  async next(): Promise<void> {
    if (!this.rung && !this.over && !this.failure) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
        timer = setTimeout(resolve, LOOK_MS);
      });
      clearTimeout(timer);
    }
    this.rung = false;
    if (this.failure) throw this.failure.because;
  }

  stop(): void {
    clearTimeout(this.deadline);
    this.call.signal.removeEventListener('abort', this.onGone);
    this.call.draining.removeEventListener('abort', this.onDrain);
  }

  private end(): void {
    this.over = true;
    this.wake?.();
  }

  private fail(because: unknown): void {
    this.failure = { because };
    this.wake?.();
  }
}
