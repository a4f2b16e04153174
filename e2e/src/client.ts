import type { RunEvent, RunSnapshot } from '@isthmus/protocol';
import { EventSourceParserStream } from 'eventsource-parser/stream';

export type Answer = { readonly status: number; readonly headers: Headers; readonly text: string };
export type Sent = { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>>; readonly signal?: AbortSignal };
export type Frame = { readonly id: string | undefined; readonly event: string | undefined; readonly data: RunEvent };
export type Poll = {
  runId: string;
  events: RunEvent[];
  isComplete: boolean;
  isTerminal: boolean;
  lastEventSeq: number;
  runStatus: RunSnapshot['status'];
};

/** The REST interface as anyone with a key sees it; without a key, as anyone. */
export class Client {
  constructor(
    readonly baseUrl: string,
    readonly key?: string,
  ) {}

  async ask(method: string, path: string, sent: Sent = {}): Promise<Answer> {
    const response = await this.open(method, path, sent);
    return { status: response.status, headers: response.headers, text: await response.text() };
  }

  /** As `ask`, for an answer that is still being written. */
  open(method: string, path: string, { body, headers, signal }: Sent = {}): Promise<Response> {
    return fetch(`${this.baseUrl}${path}`, {
      method,
      headers: {
        ...(this.key !== undefined && { authorization: `Bearer ${this.key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: bytesOf(body) }),
      ...(signal && { signal }),
    });
  }

  /** The parsed answer of a request that has to succeed. */
  async get<T>(path: string, sent?: Sent): Promise<T> {
    return this.must<T>('GET', path, sent);
  }

  async must<T>(method: string, path: string, sent?: Sent): Promise<T> {
    const { status, text } = await this.ask(method, path, sent);
    if (status < 200 || status > 299) throw new Error(`${method} ${path} answered ${status}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  register(definition: { readonly id: string; readonly [member: string]: unknown }): Promise<{ revision: number }> {
    return this.must('PUT', `/v1/host/isthmus/workflows/${definition.id}`, { body: definition });
  }

  mount(serverId: string, spec: object): Promise<unknown> {
    return this.must('PUT', `/v1/host/isthmus/mounts/${serverId}`, { body: spec });
  }

  async start(workflowId: string, inputs: object = {}, rest: Sent & { readonly more?: object } = {}): Promise<string> {
    const { more, ...sent } = rest;
    return (await this.must<{ runId: string }>('POST', '/v1/runs', { ...sent, body: { workflowId, inputs, ...more } })).runId;
  }

  run(runId: string): Promise<RunSnapshot> {
    return this.get(`/v1/runs/${runId}`);
  }

  /** The log as it stands. */
  async events(runId: string): Promise<RunEvent[]> {
    return (await this.get<{ events: RunEvent[] }>(`/v1/runs/${runId}/events`, { headers: { accept: 'application/json' } })).events;
  }

  poll(runId: string, query = ''): Promise<Poll> {
    return this.get(`/v1/runs/${runId}/events/poll${query}`);
  }

  resolve(runId: string, nodeId: string, resumeValue: object): Promise<unknown> {
    return this.must('POST', `/v1/runs/${runId}/interrupts/${nodeId}`, { body: { resumeValue } });
  }

  /** Follows the log by long polls until `is` holds of the run's status. */
  async until(runId: string, is: (status: RunSnapshot['status']) => boolean): Promise<RunSnapshot['status']> {
    for (let after = ''; ; ) {
      const { runStatus, lastEventSeq, isTerminal } = await this.poll(runId, after);
      if (is(runStatus)) return runStatus;
      if (isTerminal) throw new Error(`run ${runId} ended as ${runStatus}`);
      after = `?lastSequence=${lastEventSeq}`;
    }
  }

  ended(runId: string): Promise<RunSnapshot['status']> {
    return this.until(runId, isOver);
  }

  waiting(runId: string): Promise<RunSnapshot['status']> {
    return this.until(runId, (status) => status.startsWith('waiting-'));
  }

  /** The event stream, once its head is there; ends when the host ends it. */
  async stream(
    runId: string,
    { after, mode = 'debug', signal }: { after?: string | undefined; mode?: string; signal?: AbortSignal } = {},
  ): Promise<AsyncIterable<Frame>> {
    const response = await this.open('GET', `/v1/runs/${runId}/events?streamMode=${mode}`, {
      headers: { accept: 'text/event-stream', ...(after !== undefined && { 'last-event-id': after }) },
      ...(signal && { signal }),
    });
    if (!response.ok || !response.body) throw new Refused(response.status, await response.text());
    return framesOf(response.body);
  }

  async *follow(runId: string, options: Parameters<Client['stream']>[1] = {}): AsyncGenerator<Frame> {
    yield* await this.stream(runId, options);
  }

  /** The whole stream of a run that ends. */
  async frames(runId: string, options: Parameters<Client['stream']>[1] = {}): Promise<Frame[]> {
    return gather(await this.stream(runId, options));
  }
}

export async function gather<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of stream) all.push(one);
  return all;
}

async function* framesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const frames = body.pipeThrough(new TextDecoderStream() as never).pipeThrough(new EventSourceParserStream());
  for await (const { id, event, data } of frames as unknown as AsyncIterable<{ id?: string; event?: string; data: string }>)
    yield { id, event, data: JSON.parse(data) as RunEvent };
}

/** An HTTP refusal where a stream was wanted. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly text: string,
  ) {
    super(`answered ${status}: ${text}`);
  }
}

export const isOver = (status: string): boolean => ['completed', 'failed', 'cancelled'].includes(status);
export const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** Text and bytes go as they are, anything else as JSON. */
const bytesOf = (body: unknown): string | Uint8Array<ArrayBuffer> =>
  typeof body === 'string' || body instanceof Uint8Array ? (body as string | Uint8Array<ArrayBuffer>) : JSON.stringify(body);
