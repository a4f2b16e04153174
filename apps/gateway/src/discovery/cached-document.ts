import type { FastifyReply, FastifyRequest } from 'fastify';
import { etagOf, matches } from '../http/etag.js';

/** A JSON document that is the same for everyone: its bytes are made once. */
export type CachedDocument = { readonly bytes: string; readonly etag: string };

export function cachedDocument(value: unknown): CachedDocument {
  const bytes = JSON.stringify(value);
  return { bytes, etag: etagOf(bytes) };
}

/** The document, or 304 where the asker has it already. */
export function sendDocument(request: FastifyRequest, reply: FastifyReply, { bytes, etag }: CachedDocument): FastifyReply {
  reply.header('cache-control', 'public, max-age=300').header('etag', etag);
  if (matches(request.headers['if-none-match'], etag)) return reply.code(304).send();
  return reply.code(200).header('content-type', 'application/json; charset=utf-8').send(bytes);
}
