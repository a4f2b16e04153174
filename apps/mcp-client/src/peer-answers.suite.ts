import type { ServerResponse } from 'node:http';
import { modernPeer, type PeerOptions, type RecordedRequest } from '@isthmus/testing';
import { ending } from './rig.suite.js';

/** A modern server for one test. */
export const peer = async (options?: PeerOptions) => ending(await modernPeer(options));

export const json = (response: ServerResponse, body: unknown, status = 200) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

export const idOf = ({ body }: RecordedRequest): unknown => (body as { id: unknown }).id;
export const paramsOf = (request: RecordedRequest | undefined) => (request as { body: { params: Record<string, unknown> } }).body.params;
export const methodsOf = (requests: readonly RecordedRequest[]) => requests.map(({ method, httpMethod }) => method ?? httpMethod);

export const resultOf = (request: RecordedRequest, result: object) => ({ jsonrpc: '2.0', id: idOf(request), result });
export const errorBody = (request: RecordedRequest, code: number, message: string, data?: unknown) => ({
  jsonrpc: '2.0',
  id: idOf(request),
  error: { code, message, data },
});

/** Answers `tools/call` in the peer's place. */
export const onCall = (answer: (request: RecordedRequest, response: ServerResponse, nth: number) => void): PeerOptions['intercept'] => {
  let nth = 0;
  return (request, response) => {
    if (request.method !== 'tools/call') return false;
    answer(request, response, nth);
    nth += 1;
    return true;
  };
};

/** Answers everything with a status and nothing else. */
export const always =
  (status: number, headers: Record<string, string> = {}): PeerOptions['intercept'] =>
  (_, response) => {
    response.writeHead(status, headers).end();
    return true;
  };
