import { Controller, UseGuards } from '@nestjs/common';
import { Bus } from '@isthmus/messaging';
import type { RunEvent } from '@isthmus/protocol';
import type { Asker } from '../auth/asker.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';
import { readLog } from '../runs/read-log.js';
import { SeamGuard } from './seam.guard.js';
import { SEAMS } from './seams.js';

const MAX_LOG_BYTES = 8 * 1024 * 1024;

type Filter = Asked<typeof SEAMS.runEvents>['query'];

/** The log as it is kept, with the asker's rights. */
@Controller()
@UseGuards(SeamGuard)
export class RunEventsSeamController {
  constructor(private readonly bus: Bus) {}

  @Route(SEAMS.runEvents)
  async events(@Ask() { params, query }: Asked<typeof SEAMS.runEvents>, @By() { passport }: Asker) {
    const { events } = await readLog(this.bus, passport, params.runId, MAX_LOG_BYTES);
    return { events: events.filter((event) => passes(event, query)) };
  }
}

/** A filter that names something no event has lets nothing through. */
const passes = (event: RunEvent, filter: Filter): boolean =>
  (['type', 'nodeId', 'causationId', 'correlationId'] as const).every(
    (member) => filter[member] === undefined || (event as Readonly<Record<string, unknown>>)[member] === filter[member],
  );
