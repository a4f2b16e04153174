import { randomUUID } from 'node:crypto';
import { Logger, runInContext, withSpan } from '@isthmus/chassis';
import { type Caller, type Contract, HEADERS, isWopError, MESSAGE_BUDGET_BYTES, validationError, WopError } from '@isthmus/protocol';
import type { MsgHdrs } from '@nats-io/transport-node';
import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { type NatsContext, RpcException } from '@nestjs/microservices';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { AuditTrail } from './audit-trail.js';
import { isDatabaseAway } from './database-away.js';
import { setFacts } from './from.decorator.js';
import { CONTRACT } from './handled.js';
import { Nats } from './nats.js';
import { Passports } from './passports.js';

const HEARTBEAT_MS = 1_000;

/** Everything that is the same for every contract, once: passport, scopes, parsing, trace, heartbeat, errors. */
@Injectable()
export class ContractInterceptor implements NestInterceptor {
  constructor(
    private readonly reflector: Reflector,
    private readonly passports: Passports,
    private readonly nats: Nats,
    private readonly audit: AuditTrail,
    private readonly logger: Logger,
  ) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const contract = this.reflector.get<Contract>(CONTRACT, context.getHandler());
    return from(this.answer(contract, context, next));
  }

  private async answer(contract: Contract, context: ExecutionContext, next: CallHandler): Promise<unknown> {
    const message = context.switchToRpc().getContext<NatsContext>();
    const head = message.getHeaders() as MsgHdrs | undefined;
    const carrier = { traceparent: head?.get(HEADERS.traceparent) || undefined, tracestate: head?.get(HEADERS.tracestate) || undefined };
    const stopHeartbeat = this.heartbeat(head);
    try {
      return await runInContext(carrier, () =>
        withSpan(contract.subject, {}, async () => {
          const passport = head?.get(HEADERS.passport) || undefined;
          const caller = contract.access === 'internal' ? undefined : await this.admit(contract, contract.access, passport);
          setFacts(message, { caller, passport });
          const args = context.getArgs<unknown[]>();
          args[0] = parse(contract, args[0]);
          return bounded(contract, await lastValueFrom(next.handle()));
        }),
      );
    } catch (error) {
      throw new RpcException(this.envelope(contract, error));
    } finally {
      stopHeartbeat();
    }
  }

  private async admit(contract: Contract, scopes: readonly string[], passport: string | undefined): Promise<Caller> {
    if (!passport) throw new WopError('unauthenticated', 'The message carries no passport.');
    const caller = await this.passports.verify(passport);
    const missing = scopes.filter((scope) => !(caller.scopes as readonly string[]).includes(scope));
    if (missing.length === 0) return caller;
    this.audit.denied(caller, missing.join(' '), contract.subject, 'scope-missing');
    throw new WopError('forbidden', `This credential lacks the scope ${missing.join(' and ')}.`, { scopeRequired: missing.join(' ') });
  }

  private heartbeat(head: MsgHdrs | undefined): () => void {
    const subject = head?.get(HEADERS.heartbeat);
    if (!subject) return () => undefined;
    const beat = (): void => this.nats.connection().publish(subject);
    beat();
    const timer = setInterval(beat, HEARTBEAT_MS);
    return () => clearInterval(timer);
  }

  /** A fault of ours keeps its story in the log and leaves as a number to look for. */
  private envelope(contract: Contract, error: unknown): object {
    if (isWopError(error)) return error.toEnvelope();
    if (isDatabaseAway(error)) {
      this.logger.warn(`${contract.subject}: Postgres is away`, { error });
      return new WopError('service_unavailable', 'The host cannot reach its database right now. Try again.', {
        retryAfter: 1,
      }).toEnvelope();
    }
    const correlationId = randomUUID();
    this.logger.error(`${contract.subject} failed`, { correlationId, error });
    return new WopError('internal_error', 'The host failed to answer. The correlation id finds the cause in its logs.', {
      correlationId,
    }).toEnvelope();
  }
}

function parse(contract: Contract, data: unknown): unknown {
  const parsed = contract.input.safeParse(data);
  if (!parsed.success) throw validationError(parsed.error, 'request');
  return parsed.data;
}

/** Null instead of undefined: Nest's client side cannot tell undefined from no answer. Too big is a fault, not a lost message. */
function bounded(contract: Contract, value: unknown): unknown {
  if (value === undefined) return null;
  // The envelope around it and multi-byte text have the other half of NATS' megabyte.
  if (contract.heartbeat && JSON.stringify(value).length > MESSAGE_BUDGET_BYTES)
    throw new WopError('payload_too_large', 'The answer is larger than a message may be.');
  return value;
}
