import { Controller } from '@nestjs/common';
import { Bus } from '@isthmus/messaging';
import { authz, ROUTES } from '@isthmus/protocol';
import type { Asker } from '../auth/asker.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';

@Controller()
export class AuditController {
  constructor(private readonly bus: Bus) {}

  @Route(ROUTES.verifyAudit)
  verify(@Ask() { query: { fromSeq, toSeq } }: Asked<typeof ROUTES.verifyAudit>, @By() { passport }: Asker) {
    return this.bus.call(authz.verifyAudit, { fromSeq, toSeq }, { passport });
  }
}
