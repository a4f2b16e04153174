import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { Postgres } from '@isthmus/db';
import { From, Handle } from '@isthmus/messaging';
import { authz, type Caller, type Output, type Parsed } from '@isthmus/protocol';
import { AuditSealer } from './audit-sealer.js';
import { AuditSigner } from './audit-signer.js';
import { verifyRange } from './audit-verification.js';

@Controller()
export class AuditController {
  constructor(
    private readonly db: Postgres,
    private readonly signer: AuditSigner,
    private readonly sealer: AuditSealer,
  ) {}

  /** The chain of the asker's tenant, sealed up to now first: whoever looks gets a signature on all of it. */
  @Handle(authz.verifyAudit)
  async verify(@From() { tenant }: Caller, @Payload() range: Parsed<typeof authz.verifyAudit>): Promise<Output<typeof authz.verifyAudit>> {
    await this.sealer.seal(tenant);
    const key = await this.signer.key();
    return this.db.asTenant(tenant, (tx) => verifyRange(tx, tenant, key, range));
  }
}
