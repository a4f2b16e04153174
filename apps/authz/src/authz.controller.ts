import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { Clock } from '@isthmus/chassis';
import { Handle } from '@isthmus/messaging';
import { authz, type Description, type Output, type Parsed, type Passport } from '@isthmus/protocol';
import { AuditLog } from './audit-log.js';
import { AuditSigner } from './audit-signer.js';
import { Authenticator } from './authenticator.js';
import { Delegation } from './delegation.js';
import { describe } from './describe.js';
import { Revocations } from './revocations.js';
import { SigningKeys } from './signing-keys.js';

type Authenticate = Parsed<typeof authz.authenticate>;
type Delegate = Parsed<typeof authz.delegate>;
type Since = Parsed<typeof authz.revocationsSince>;
type Record = Parsed<typeof authz.recordAudit>;

@Controller()
export class AuthzController {
  constructor(
    private readonly authenticator: Authenticator,
    private readonly delegation: Delegation,
    private readonly keys: SigningKeys,
    private readonly revocations: Revocations,
    private readonly audit: AuditLog,
    private readonly auditSigner: AuditSigner,
    private readonly clock: Clock,
  ) {}

  @Handle(authz.authenticate)
  authenticate(@Payload() { credential }: Authenticate): Promise<Passport> {
    return this.authenticator.authenticate(credential.token);
  }

  @Handle(authz.delegate)
  delegate(@Payload() request: Delegate): Promise<Passport> {
    return this.delegation.delegate(request);
  }

  @Handle(authz.publicKeys)
  async publicKeys(): Promise<Output<typeof authz.publicKeys>> {
    return { keys: await this.keys.publicKeys() };
  }

  @Handle(authz.revocationsSince)
  revocationsSince(@Payload() { epoch }: Since): Promise<Output<typeof authz.revocationsSince>> {
    return this.revocations.since(epoch);
  }

  @Handle(authz.recordAudit)
  async recordAudit(@Payload() { entries }: Record): Promise<Output<typeof authz.recordAudit>> {
    await this.audit.recordAll(entries, this.clock.date());
    return { recorded: entries.length };
  }

  @Handle(authz.describe)
  async describe(): Promise<Description> {
    return describe((await this.auditSigner.key()).publicKey);
  }
}
