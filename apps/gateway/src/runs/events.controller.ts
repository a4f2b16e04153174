import { Controller, Req, Res } from '@nestjs/common';
import { Bus } from '@isthmus/messaging';
import { isTerminal, ROUTES } from '@isthmus/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Asker } from '../auth/asker.js';
import { Inflight } from '../http/inflight.js';
import { Ask, type Asked, By, Route } from '../http/route.decorator.js';
import { eventFormat } from './accept.js';
import { EventStream, type StreamPage } from './event-stream.js';
import { News } from './news.js';
import { type ReadPage, readPage } from './read-page.js';
import { RunWatch, type Watching } from './run-watch.js';
import { nextAfter, resumeFrom, SSE_HEADERS, type Streamed } from './sse.js';
import { readState } from './state-snapshot.js';
import { parseStreamMode, type Shows, showsAll } from './stream-modes.js';

const DEFAULT_POLL_S = 30;

/** A run's events, as a stream, as JSON, and by polling. */
@Controller()
export class EventsController {
  constructor(
    private readonly bus: Bus,
    private readonly watch: RunWatch,
    private readonly inflight: Inflight,
  ) {}

  @Route(ROUTES.streamEvents)
  async events(
    @Ask() { params, query }: Asked<typeof ROUTES.streamEvents>,
    @By() asker: Asker,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    // Before the format is chosen, so that a bad mode is refused in both. (wire §9.5)
    const mode = parseStreamMode(query.streamMode);
    const { runId } = params;
    if (eventFormat(request.headers.accept) === 'json') {
      // JSON is the log as it stands; a mode that was asked for is honoured, the stream's default is not imposed.
      const shows = mode.is === 'values' || query.streamMode === undefined ? showsAll : mode.shows;
      const events = mode.is === 'values' ? (await this.state(asker, runId)).events : await this.readAll(asker, runId, shows);
      await reply.send({ events });
      return;
    }
    const isState = mode.is === 'values';
    // Who comes back to the state gets it as it stands, not what was missed. (wire §9.4)
    const from = isState ? 0 : resumeFrom(header(request, 'last-event-id'));
    const read = (who: Asker, next: number): Promise<StreamPage> => (isState ? this.state(who, runId) : this.read(who, runId, next));
    if (request.method === 'HEAD') {
      await read(asker, from);
      await reply.headers(SSE_HEADERS).send();
      return;
    }
    const reading = { asker, from, shows: isState ? showsAll : mode.shows, read, rereads: isState, bufferMs: query.bufferMs };
    const stream = new EventStream(reply, reading, () => {
      giveBack();
      watching.leave();
    });
    const { tenant, workspace } = asker.caller;
    const watching: Watching = this.watch.join({ tenant, workspace, runId }, stream);
    const giveBack = this.inflight.hold();
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

  private async readAll(asker: Asker, runId: string, shows: Shows): Promise<readonly Streamed[]> {
    const events: Streamed[] = [];
    for (let page = await this.read(asker, runId, 0); ; page = await this.read(asker, runId, page.next)) {
      for (const event of page.events) if (shows(event)) events.push(event);
      if (!page.more) return events;
    }
  }

  private state(asker: Asker, runId: string): Promise<StreamPage> {
    return readState(this.bus, asker.passport, runId);
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
