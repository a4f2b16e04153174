import { afterEach, describe, expect, it } from '@jest/globals';
import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client';
import { WopError } from '@isthmus/protocol';
import { Exchange } from './exchange.js';
import { classify, type Failure, peerText, recoveryFrom, refusalIn, STREAM_ENDED, toWopError } from './failure.js';
import { VersionRefusal } from './version-policy.js';

const open: Exchange[] = [];
const exchange = () => {
  const made = new Exchange(60_000);
  open.push(made);
  return made;
};
afterEach(() => {
  for (const one of open.splice(0)) one.end();
});

const http = (status: number, text = '') => new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, 'x', { status, statusText: '', text });
const rpcBody = (code: number, data?: unknown) => JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message: 'm', data } });
const denied = new WopError('egress_denied', 'no');

describe('what went wrong', () => {
  it.each<[string, unknown, boolean, Failure]>([
    [
      'a refused address, below what others made of it',
      new SdkError(SdkErrorCode.EraNegotiationFailed, 'x', {}, { cause: new TypeError('fetch failed', { cause: denied }) }),
      false,
      { is: 'ours', error: denied },
    ],
    ['a connection refused', new TypeError('fetch failed'), false, { is: 'transport', cause: expect.anything() }],
    ['a server in trouble', http(503), false, { is: 'transport', cause: expect.anything() }],
    ['a server that wants to be left alone', http(429), false, { is: 'transport', cause: expect.anything() }],
    ['a stream that broke', new ProtocolError(-32603, 'x', STREAM_ENDED), false, { is: 'transport', cause: expect.anything() }],
    [
      'a stream that did not break although the server says so',
      new ProtocolError(-32603, 'x', { reason: 'stream_ended' }),
      false,
      { is: 'rpc', code: -32603, message: 'x' },
    ],
    ['a session that is gone', http(404), true, { is: 'session_lost' }],
    ['a session that is gone, as a 400', http(400, rpcBody(-32000)), true, { is: 'session_lost' }],
    ['a bad request in a session', http(400, rpcBody(-32600)), true, { is: 'rpc', code: -32600, message: 'm' }],
    ['a wrong path', http(404), false, { is: 'http', status: 404 }],
    ['no credential', http(401), false, { is: 'http', status: 401 }],
    ['an error in an HTTP error', http(400, rpcBody(-32021)), false, { is: 'rpc', code: -32021, message: 'm' }],
    [
      'a revision refused',
      new ProtocolError(-32022, 'x', { supported: ['2025-11-25'] }),
      false,
      { is: 'version', supported: ['2025-11-25'] },
    ],
    ['headers refused', new ProtocolError(-32020, 'x'), false, { is: 'header_mismatch' }],
    ['no result', new SdkError(SdkErrorCode.InvalidResult, 'x'), false, { is: 'invalid_answer' }],
    ['no JSON', new SyntaxError('x'), false, { is: 'invalid_answer' }],
  ])('%s', (_, error, hasSession, expected) => {
    expect(classify(error, exchange(), hasSession)).toEqual(expected);
  });

  it('is why the exchange was stopped, whatever followed from that', () => {
    const one = exchange();
    const reason = new WopError('mcp_tool_invocation_failed', 'abandoned');
    one.stop(reason);
    expect(classify(new TypeError('terminated'), one, false)).toEqual({ is: 'ours', error: reason });
  });
});

describe('a refused era', () => {
  it.each<[string, unknown, readonly string[] | undefined]>([
    ['-32022 with a list', new ProtocolError(-32022, 'x', { supported: ['2025-06-18'], requested: '2026-07-28' }), ['2025-06-18']],
    ['-32022 to initialize', http(400, rpcBody(-32022, { supported: ['2026-07-28'] })), ['2026-07-28']],
    ['initialize is unknown', http(404, rpcBody(-32601)), []],
    ['a verdict of the probe', new SdkError(SdkErrorCode.EraNegotiationFailed, 'x'), []],
    ['a counter-offer', new VersionRefusal(['2024-11-05']), ['2024-11-05']],
    ['not: no answer to the probe', new SdkError(SdkErrorCode.EraNegotiationFailed, 'x', {}, { cause: new Error('refused') }), undefined],
    [
      'not: a probe answered with 500',
      new SdkHttpError(SdkErrorCode.EraNegotiationFailed, 'x', { status: 500, statusText: '' }),
      undefined,
    ],
    ['not: 401', http(401), undefined],
  ])('%s', (_, error, supported) => {
    expect(refusalIn(error)?.supported).toEqual(supported);
  });
});

describe('what can be made good', () => {
  const usual = { isFresh: false, isSent: false, mayRepeat: false, allowedRevisions: ['2026-07-28'] };
  const transport: Failure = { is: 'transport', cause: undefined };
  it.each<[string, Failure, Partial<typeof usual>, ReturnType<typeof recoveryFrom>]>([
    ['a lost session', { is: 'session_lost' }, { isSent: true }, 'reconnect'],
    ['a revision refused for one we may use', { is: 'version', supported: ['2026-07-28'] }, { isSent: true }, 'reconnect'],
    ['not: a revision refused for one we may not use', { is: 'version', supported: ['2024-11-05'] }, {}, undefined],
    ['headers that changed', { is: 'header_mismatch' }, { isSent: true }, 'relist'],
    ['an old connection that broke before the call was sent', transport, {}, 'reconnect'],
    ['not: a new connection that broke', transport, { isFresh: true }, undefined],
    ['a lost answer where a repeat is allowed', transport, { isSent: true, mayRepeat: true, isFresh: true }, 'reconnect'],
    ['not: a lost answer where it is not', transport, { isSent: true }, undefined],
    ['not: an error the server means', { is: 'rpc', code: -32000, message: '' }, { mayRepeat: true }, undefined],
  ])('%s', (_, failure, circumstances, expected) => {
    expect(recoveryFrom(failure, { ...usual, ...circumstances })).toBe(expected);
  });
});

describe('what the asker is told', () => {
  it('holds the code and a little text, without anything that looks like a credential', () => {
    const error = toWopError(
      { is: 'rpc', code: -32000, message: `bad key sk-${'a'.repeat(40)}\n\u0000 Bearer abc.def ${'x'.repeat(1e6)}` },
      true,
    );
    expect(error).toMatchObject({ code: 'mcp_tool_invocation_failed', details: { reason: 'rpc_error', code: -32000 } });
    expect(error.message).not.toMatch(/sk-a|abc\.def|\p{Cc}/u);
    expect(error.message.length).toBeLessThan(400);
  });

  it('is whole text even if the peer sent half a character', () => {
    expect(peerText('\ud800')).toBe('\ufffd');
  });

  it('says of a disconnect whether the call may have been received', () => {
    for (const sent of [true, false])
      expect(toWopError({ is: 'transport', cause: undefined }, sent)).toMatchObject({
        code: 'mcp_server_disconnected',
        retriable: true,
        details: { sent },
      });
  });
});
