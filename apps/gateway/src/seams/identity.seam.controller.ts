import { Controller, UseGuards } from '@nestjs/common';
import { Bus } from '@isthmus/messaging';
import { authz, engine, isWopError, WopError } from '@isthmus/protocol';
import type { Asker } from '../auth/asker.js';
import { By, Route } from '../http/route.decorator.js';
import { SeamGuard } from './seam.guard.js';
import { SEAMS } from './seams.js';
import { Stage } from './stage.js';

/** Where somebody else works. `--conformance` makes it in every tenant. */
const OTHER_WORKSPACE = 'conformance';
const NODE = { typeId: 'core.noop' };
const WORKFLOW = 'seam.identity';

/** Whose runs are whose. (spec/seams.md §5) */
@Controller()
@UseGuards(SeamGuard)
export class IdentitySeamController {
  constructor(
    private readonly bus: Bus,
    private readonly stage: Stage,
  ) {}

  @Route(SEAMS.ownedRun)
  async owned(@By() { passport }: Asker) {
    return this.read(passport, await this.stage.run(passport, WORKFLOW, NODE));
  }

  /** Makes a run in another workspace of the tenant, then reads it with the asker's own rights and passes on what the engine says. */
  @Route(SEAMS.crossWorkspaceRead)
  async foreign(@By() { caller, passport }: Asker) {
    const theirs = await this.passportOf(caller.tenant);
    return this.read(passport, await this.stage.run(theirs, WORKFLOW, NODE));
  }

  private async read(passport: string, runId: string) {
    return (await this.bus.call(engine.readRun, { runId, want: ['snapshot'] }, { passport })).snapshot;
  }

  private async passportOf(tenant: string): Promise<string> {
    try {
      const { token } = await this.bus.call(authz.delegate, {
        for: 'service',
        service: 'gateway',
        tenant,
        workspace: OTHER_WORKSPACE,
        scopes: ['manifest:read', 'manifest:write', 'runs:create'],
      });
      return token;
    } catch (error) {
      // Not to be mistaken for the refusal that is looked for.
      if (isWopError(error) && error.code === 'forbidden')
        throw new WopError('capability_not_provided', `This tenant has no second workspace "${OTHER_WORKSPACE}" to read from.`);
      throw error;
    }
  }
}
