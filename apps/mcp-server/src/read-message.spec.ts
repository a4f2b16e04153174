import { describe, expect, it } from '@jest/globals';
import { collect, readMessage, Refused } from './read-message.js';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const refusal = (body: Uint8Array | string) => {
  try {
    readMessage(typeof body === 'string' ? bytes(body) : body);
  } catch (error) {
    if (error instanceof Refused) return { id: error.id, code: error.error.code };
    throw error;
  }
  return undefined;
};

describe('a message', () => {
  it('is a request or a notification', () => {
    expect(readMessage(bytes('{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}}'))).toEqual({
      is: 'request',
      id: 'a',
      method: 'm',
      params: { x: 1 },
    });
    expect(readMessage(bytes('{"jsonrpc":"2.0","method":"m"}'))).toEqual({ is: 'notification', method: 'm', params: {} });
  });

  it.each<[string, string | Uint8Array, { id?: string | number; code: number }]>([
    ['broken JSON', '{', { code: -32700 }],
    ['nothing', '', { code: -32700 }],
    ['bad UTF-8', new Uint8Array([0x22, 0xff, 0x22]), { code: -32700 }],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"m"}]', { code: -32600 }],
    ['a number', '5', { code: -32600 }],
    ['null', 'null', { code: -32600 }],
    ['another version of JSON-RPC', '{"jsonrpc":"1.0","id":1,"method":"m"}', { id: 1, code: -32600 }],
    ['an id of null', '{"jsonrpc":"2.0","id":null,"method":"m"}', { code: -32600 }],
    ['a fraction as id', '{"jsonrpc":"2.0","id":1.5,"method":"m"}', { code: -32600 }],
    ['params in a list', '{"jsonrpc":"2.0","id":1,"method":"m","params":[]}', { id: 1, code: -32600 }],
    ['a response', '{"jsonrpc":"2.0","id":1,"result":{}}', { id: 1, code: -32600 }],
    ['U+0000', '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\u0000"}}', { id: 1, code: -32602 }],
    ['half a surrogate pair', '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\ud800"}}', { id: 1, code: -32602 }],
    ['a forbidden name', '{"jsonrpc":"2.0","id":1,"method":"m","params":{"__proto__":{}}}', { id: 1, code: -32602 }],
    [
      'a deep document',
      `{"jsonrpc":"2.0","id":1,"method":"m","params":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_001)}`,
      { id: 1, code: -32602 },
    ],
  ])('is not %s', (_, body, expected) => {
    expect(refusal(body)).toEqual({ id: undefined, ...expected });
  });
});

describe('a body', () => {
  async function* pieces(count: number): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < count; at++) yield bytes('0123456789');
  }
  it('is put together from its pieces', async () => {
    expect(Buffer.from(await collect(pieces(3))).toString()).toBe('0123456789'.repeat(3));
    expect((await collect(undefined)).length).toBe(0);
  });
  it('that is too long is 413 before the rest of it is read', async () => {
    await expect(collect(pieces(1_000_000), 25)).rejects.toMatchObject({ error: { status: 413 } });
  });
});
