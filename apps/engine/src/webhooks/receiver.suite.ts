import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from '@isthmus/testing';

export type Received = { readonly headers: IncomingHttpHeaders; readonly text: string; readonly at: number };
type Answer = { readonly status: number; readonly headers?: Readonly<Record<string, string>> };

/** An endpoint of a subscriber: keeps what it was sent, and answers as the test says at the moment. */
export class Receiver {
  readonly received: Received[] = [];
  answer: Answer = { status: 204 };
  private readonly server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    request.on('end', () => {
      this.received.push({ headers: request.headers, text, at: Date.now() });
      response.writeHead(this.answer.status, this.answer.headers).end();
    });
  });

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((resolve) => receiver.server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hook`;
  }

  of(runId: string): readonly Received[] {
    return this.received.filter(({ text }) => (JSON.parse(text) as { runId?: string }).runId === runId);
  }

  /** What it was told about a run, once it was told `count` things. */
  async heard(runId: string, count = 1): Promise<readonly Received[]> {
    await until(() => this.of(runId).length >= count, { timeoutMs: 10_000, what: `the ${count}th delivery about ${runId}` });
    return this.of(runId);
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
