import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { Clock, Health, Logger, withSpan } from '@isthmus/chassis';
import { Egress } from '@isthmus/egress';
import { Bell } from '@isthmus/messaging';
import { BELLS } from '@isthmus/protocol';
import { type ClaimedDelivery, Deliveries } from './deliveries.js';
import { bodyOf, messageId } from './message.js';
import { send, TIMEOUT_MS } from './sender.js';
import { WEBHOOK_SETTINGS, type WebhookSettings } from './settings.js';

/** Longer than an attempt takes, with the word about it. */
const CLAIM_MS = TIMEOUT_MS + 10_000;
const MAX_IN_FLIGHT = 64;
/** A tenant whose endpoints are slow leaves room for the others. */
const MAX_PER_TENANT = 16;
const CLAIM_TENANTS = 200;
const CLAIM_PER_TENANT = 8;
/** Bells of many runs are one look. */
const BELL_MS = 20;
/** How often it is asked whether anybody listens at all. */
const INTEREST_MS = 5_000;
const DRAIN_MS = 3_000;

/**
 * Tells subscribers what happened: takes deliveries that are due, sends, and writes down what came of it. At least once: a
 * process that dies between the two leaves a claim that ends, and another one sends again under the same id.
 */
@Injectable()
export class Deliverer implements OnModuleInit {
  private readonly inFlight = new Map<Promise<void>, string>();
  private readonly timers: NodeJS.Timeout[] = [];
  private stopListening: (() => void) | undefined;
  private rung: NodeJS.Timeout | undefined;
  private cursor = '';
  private isLooking = false;
  private mustLookAgain = false;
  private isDraining = false;

  constructor(
    private readonly deliveries: Deliveries,
    private readonly egress: Egress,
    private readonly bell: Bell,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly health: Health,
    @Inject(WEBHOOK_SETTINGS) private readonly settings: WebhookSettings,
  ) {}

  onModuleInit(): void {
    this.timers.push(
      setInterval(() => void this.look(), this.settings.sweepMs),
      setInterval(() => void this.follow(), INTEREST_MS),
    );
    void this.follow();
    this.health.onDrain(() => this.drain());
  }

  /** Listens to the bells of runs while anybody has a subscription: a host without any hears none. */
  async follow(): Promise<void> {
    try {
      const areWanted = await this.deliveries.areWanted();
      if (areWanted && !this.isDraining) this.stopListening ??= this.bell.listen(BELLS.run.all, () => this.lookSoon());
      else this.stop();
    } catch (error) {
      this.logger.warn('whether there are webhooks could not be asked', { error });
    }
  }

  private stop(): void {
    this.stopListening?.();
    this.stopListening = undefined;
  }

  private lookSoon(): void {
    if (this.isDraining) return;
    this.rung ??= setTimeout(() => {
      this.rung = undefined;
      void this.look();
    }, BELL_MS);
  }

  /** Takes what is due, as far as there is room; and again while there was more than was taken. */
  private async look(): Promise<void> {
    if (this.isLooking || this.isDraining) {
      this.mustLookAgain = true;
      return;
    }
    this.isLooking = true;
    try {
      do {
        this.mustLookAgain = false;
        await this.take();
      } while (this.mustLookAgain && !this.isDraining);
    } catch (error) {
      this.logger.warn('looking for due webhook deliveries failed and will be tried again', { error });
    } finally {
      this.isLooking = false;
    }
  }

  private async take(): Promise<void> {
    const limit = MAX_IN_FLIGHT - this.inFlight.size;
    if (limit <= 0) return;
    const at = this.clock.date();
    const { claims, cursor } = await this.deliveries.claim({
      at,
      until: new Date(at.getTime() + CLAIM_MS),
      after: this.cursor,
      busy: this.busyTenants(),
      tenants: CLAIM_TENANTS,
      perTenant: CLAIM_PER_TENANT,
      limit,
    });
    this.cursor = cursor;
    for (const claim of claims) {
      const work = this.deliver(claim)
        .catch((error: unknown) =>
          this.logger.warn('a webhook delivery was let go; its claim ends by itself', { ...factsOf(claim), error }),
        )
        .finally(() => {
          this.inFlight.delete(work);
          // There is room again, and perhaps more to send.
          this.lookSoon();
        });
      this.inFlight.set(work, claim.tenant);
    }
  }

  private busyTenants(): string[] {
    const counts = new Map<string, number>();
    for (const tenant of this.inFlight.values()) counts.set(tenant, (counts.get(tenant) ?? 0) + 1);
    return [...counts].filter(([, count]) => count >= MAX_PER_TENANT).map(([tenant]) => tenant);
  }

  private async deliver(claim: ClaimedDelivery): Promise<void> {
    const letter = await this.deliveries.read(claim);
    if (!letter) return this.deliveries.drop(claim);
    const { url, secret, workspace, event } = letter;
    if (!event) return this.deliveries.bury(claim, 'the history of the run is no longer kept');
    const [eventType] = event;
    const message = {
      webhookId: claim.webhookId,
      messageId: messageId(claim),
      eventType,
      timestamp: Math.floor(this.clock.now() / 1_000),
      body: bodyOf(claim.runId, claim.sequence, workspace, event),
    };
    const attributes = { 'openwop.run_id': claim.runId, 'openwop.event_type': eventType, 'openwop.event_seq': claim.sequence };
    const sent = await withSpan('openwop.activity.webhook', attributes, () => send(this.egress, url, secret, message));
    if (sent.is === 'delivered') return this.deliveries.delivered(claim, this.clock.date());
    const again = await this.deliveries.failed(claim, sent.problem, this.clock.now(), this.settings);
    this.logger[again ? 'info' : 'warn'](again ? 'a webhook delivery failed and will be tried again' : 'a webhook delivery is dead', {
      ...factsOf(claim),
      problem: sent.problem,
      ...(again && { again }),
    });
  }

  /** What is on its way may arrive; the claims of the rest end by themselves. */
  private async drain(): Promise<void> {
    this.isDraining = true;
    this.stop();
    clearTimeout(this.rung);
    for (const timer of this.timers) clearInterval(timer);
    const late = new Promise((resolve) => setTimeout(resolve, DRAIN_MS).unref());
    await Promise.race([Promise.all(this.inFlight.keys()), late]);
    await this.egress.close();
  }
}

const factsOf = ({ tenant, webhookId, runId, sequence, attempt }: ClaimedDelivery) => ({ tenant, webhookId, runId, sequence, attempt });
