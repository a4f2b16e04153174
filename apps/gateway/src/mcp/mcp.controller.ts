import { pipeline } from 'node:stream/promises';
import { Controller, Post, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { type ExchangeReply, Nats, openExchange } from '@isthmus/messaging';
import { WopError } from '@isthmus/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Asker } from '../auth/asker.js';
import { MCP_PATH } from '../http/known-paths.js';
import { By } from '../http/route.decorator.js';
import { answeredHeaders, forwardedHeaders } from './forwarded-headers.js';

/** The pool of the default mount. */
const POOL = 'default';
/** Until an answer begins. A replica that still works by then says so itself, long before. */
const HEAD_DEADLINE_MS = 120_000;

/** The MCP mount: one HTTP exchange in, the same exchange carried to a replica of the pool. What it says is the replica's business. */
@Controller()
export class McpController {
  constructor(private readonly nats: Nats) {}

  @Post(MCP_PATH)
  @RouteConfig({ isRaw: true })
  async exchange(@By() asker: Asker, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const { body } = request;
    if (!(body instanceof Uint8Array)) throw new WopError('unsupported_media_type', 'The body must be application/json in UTF-8.');
    // Closing the response is how a client of this revision cancels. (spec/mcp.md §1.5)
    const gone = new AbortController();
    // `close` comes after every answer, too: only before its end does it mean that the client left.
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) gone.abort(new Error('The client went away.'));
    });
    try {
      const answer = await openExchange(await this.nats.tunnel(), POOL, {
        method: 'POST',
        url: request.raw.url ?? MCP_PATH,
        headers: forwardedHeaders(request.raw.rawHeaders),
        body,
        passport: asker.passport,
        deadlineMs: HEAD_DEADLINE_MS,
        signal: gone.signal,
      });
      await (answer.whole ? sendWhole(reply, answer, answer.whole) : sendStream(reply, answer));
    } catch (error) {
      if (!gone.signal.aborted) throw error;
    }
  }
}

async function sendWhole(reply: FastifyReply, { status, headers }: ExchangeReply, whole: Uint8Array): Promise<void> {
  reply.code(status).headers(answeredHeaders(headers));
  await (whole.length > 0 ? reply.send(Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength)) : reply.send());
}

/** Bytes go out as they come; a client that reads slowly slows the replica, by the exchange's credit. */
async function sendStream(reply: FastifyReply, { status, headers, body }: ExchangeReply): Promise<void> {
  reply.hijack();
  reply.raw.writeHead(status, answeredHeaders(headers));
  reply.raw.flushHeaders();
  await pipeline(body, reply.raw);
}
