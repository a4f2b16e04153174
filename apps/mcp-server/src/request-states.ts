import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { AuditTrail } from '@isthmus/messaging';
import type { Json } from '@isthmus/protocol';
import { type Continuation, openState, sealState, type StateRequest } from './request-state.js';
import { invalidParams } from './rpc.js';
import { StateKeys } from './state-keys.js';

/** Seals and opens `requestState` with the keys that all replicas share. */
@Injectable()
export class RequestStates {
  constructor(
    private readonly keys: StateKeys,
    private readonly clock: Clock,
    private readonly audit: AuditTrail,
  ) {}

  async seal(request: StateRequest, continuation: Continuation): Promise<string> {
    return sealState(await this.keys.newest(), request, continuation, this.clock.now());
  }

  /** The client hears the same of every refusal, whatever was wrong: only the audit log has the reason. */
  async open(request: StateRequest, state: Json): Promise<Continuation> {
    const opened = await openState((kid) => this.keys.byId(kid), request, state, this.clock.now());
    if (opened.is === 'ours') return opened.continuation;
    this.audit.denied(request.caller, `tool:${request.name}`, `mount:${request.mount}`, opened.reason);
    throw invalidParams('The requestState is not valid for this request, or no longer.', { reason: 'invalid_request_state' });
  }
}
