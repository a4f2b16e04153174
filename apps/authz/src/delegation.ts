import { Injectable } from '@nestjs/common';
import { type authz, type Parsed, type Passport, WopError } from '@isthmus/protocol';
import { Directory } from './directory.js';
import { PassportIssuer } from './passport-issuer.js';

export type DelegationRequest = Parsed<typeof authz.delegate>;

/**
 * A passport for work that goes on without its caller. A principal has the rights of now, not of then: whoever lost them
 * meanwhile gets no passport, and the effect stops. (traps.md 24)
 */
@Injectable()
export class Delegation {
  constructor(
    private readonly directory: Directory,
    private readonly passports: PassportIssuer,
  ) {}

  delegate(request: DelegationRequest): Promise<Passport> {
    return request.for === 'principal' ? this.#toPrincipal(request) : this.#toService(request);
  }

  async #toPrincipal({ tenant, workspace, principal }: Extract<DelegationRequest, { for: 'principal' }>): Promise<Passport> {
    const known = await this.directory.principal(tenant, principal);
    if (!known || known.isDisabled) throw new WopError('forbidden', 'The principal may no longer act.');
    if (known.workspace !== workspace)
      throw new WopError('workspace_membership_required', 'The principal is not a member of the workspace.');
    return this.passports.issue({ tenant, workspace, principal, kind: 'principal', scopes: known.scopes, epoch: known.epoch });
  }

  async #toService({ service, tenant, workspace, scopes }: Extract<DelegationRequest, { for: 'service' }>): Promise<Passport> {
    const known = await this.directory.workspace(tenant, workspace);
    if (!known) throw new WopError('forbidden', 'There is no such workspace to work in.');
    return this.passports.issue({ tenant, workspace, principal: `service:${service}`, kind: 'service', scopes, epoch: known.epoch });
  }
}
