import { Controller, Res } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { Bus } from '@isthmus/messaging';
import { isRunId, type JsonObject, ROUTES, WopError } from '@isthmus/protocol';
import type { FastifyReply } from 'fastify';
import type { Asker } from '../auth/asker.js';
import { IMPLEMENTATION } from '../discovery/own-description.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';
import { debugBundle, MAX_BUNDLE_BYTES } from './debug-bundle.js';
import { masked } from './masked.js';
import { readLog } from './read-log.js';
import { diffRuns } from './run-diff.js';

/** Of each log that is compared: the answer may hold both. */
const MAX_COMPARED_BYTES = 4 * 1024 * 1024;

/** What can be told about runs from their logs. */
@Controller()
export class ReportsController {
  constructor(
    private readonly bus: Bus,
    private readonly clock: Clock,
  ) {}

  /** Both runs are read with the rights of who asks. */
  @Route(ROUTES.diffRuns)
  async diff(@Ask() { params, query }: Asked<typeof ROUTES.diffRuns>, @By() { passport }: Asker) {
    const read = (runId: string) => readLog(this.bus, passport, runId, MAX_COMPARED_BYTES);
    if (!isRunId(query.against)) throw new WopError('not_found', 'There is no run to compare with, or not for this credential.');
    const [a, b] = await Promise.all([read(params.runId), read(query.against)]);
    return masked(diffRuns(a, b) as unknown as JsonObject);
  }

  @Route(ROUTES.debugBundle)
  async bundle(
    @Ask() { params }: Asked<typeof ROUTES.debugBundle>,
    @By() { passport }: Asker,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const record = await readLog(this.bus, passport, params.runId, MAX_BUNDLE_BYTES);
    reply.header('cache-control', 'no-store');
    return debugBundle(record, IMPLEMENTATION, this.clock.date().toISOString());
  }
}
