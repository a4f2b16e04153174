import { Controller, Req, Res } from '@nestjs/common';
import { Bus } from '@isthmus/messaging';
import { isTerminal, ROUTES, type RunEvent } from '@isthmus/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Asker } from '../auth/asker.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';
import { eventFormat } from './accept.js';
import { EventStream } from './event-stream.js';
import { News } from './news.js';
import { type ReadPage, readPage } from './read-page.js';
import { RunWatch, type Watching } from './run-watch.js';
import { nextAfter, resumeFrom, SSE_HEADERS } from './sse.js';
import { parseStreamMode, type Shows, showsAll } from './stream-modes.js';

const DEFAULT_POLL_S = 30;

/** A run's events, as a stream, as JSON, and by polling. */
@Controller()
export class EventsController {
  constructor(
    private readonly bus: Bus,
    private readonly watch: RunWatch,
  ) {}

  @Route(ROUTES.streamEvents)
  async events(
    @Ask() { params, query }: Asked<typeof ROUTES.streamEvents>,
    @By() asker: Asker,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    // Before the format is chosen, so that a bad mode is refused in both. (wire §9.5)
    const shows = parseStreamMode(query.streamMode);
    if (eventFormat(request.headers.accept) === 'json') {
      // JSON is the log as it stands; a mode that was asked for is honoured, the stream's default is not imposed.
      const events = await this.readAll(asker, params.runId, query.streamMode === undefined ? showsAll : shows);
      await reply.send({ events });
      return;
    }
    const from = resumeFrom(header(request, 'last-event-id'));
    if (request.method === 'HEAD') {
      await this.read(asker, params.runId, from);
      await reply.headers(SSE_HEADERS).send();
      return;
    }
    const read = (who: Asker, next: number) => this.read(who, params.runId, next);
    const stream = new EventStream(reply, { asker, from, shows, read }, () => watching.leave());
    const { tenant, workspace } = asker.caller;
    const watching: Watching = this.watch.join({ tenant, workspace, runId: params.runId }, stream);
    watching.startAt(await stream.open());
  }

  /** (wire §4.7: the superset of both published bodies; two polls of an ended run are equal) */
  @Route(ROUTES.pollEvents)
  async poll(
    @Ask() { params, query }: Asked<typeof ROUTES.pollEvents>,
    @By() asker: Asker,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const cursor = query.lastSequence ?? query.since;
    const from = cursor === undefined ? 0 : nextAfter(cursor);
    const page = await this.read(asker, params.runId, from);
    if (page.events.length > 0 || isTerminal(page.status) || request.method === 'HEAD') return pollBody(params.runId, page);

    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    return pollBody(
      params.runId,
      await this.waitForMore(
        asker,
        params.runId,
        from,
        AbortSignal.any([gone.signal, AbortSignal.timeout((query.timeout ?? DEFAULT_POLL_S) * 1_000)]),
      ),
    );
  }

  private async waitForMore(asker: Asker, runId: string, from: number, signal: AbortSignal): Promise<ReadPage> {
    const { tenant, workspace } = asker.caller;
    const news = new News(from, signal);
    const watching = this.watch.join({ tenant, workspace, runId }, news);
    try {
      // Again, now that the bell is heard: what was appended since the last look rang for nobody.
      const page = await this.read(asker, runId, from);
      if (page.events.length > 0 || isTerminal(page.status)) return page;
      watching.startAt(page.next);
      await news.heard;
    } finally {
      watching.leave();
    }
    return this.read(await asker.renew(), runId, from);
  }

  private async readAll(asker: Asker, runId: string, shows: Shows): Promise<readonly RunEvent[]> {
    const events: RunEvent[] = [];
    for (let page = await this.read(asker, runId, 0); ; page = await this.read(asker, runId, page.next)) {
      for (const event of page.events) if (shows(event)) events.push(event);
      if (!page.more) return events;
    }
  }

  private read(asker: Asker, runId: string, from: number): Promise<ReadPage> {
    return readPage(this.bus, asker.passport, runId, from);
  }
}

/** `lastEventSeq` is a cursor that loses nothing: the last event that stands here, or the log's head when none is newer. */
const pollBody = (runId: string, page: ReadPage) => ({
  runId,
  events: page.events,
  isComplete: page.isOver,
  isTerminal: page.isOver,
  lastEventSeq: page.events.at(-1)?.sequence ?? page.head,
  runStatus: page.status,
});

const header = (request: FastifyRequest, name: string): string | undefined => {
  const value = request.headers[name];
  return typeof value === 'string' ? value : undefined;
};
