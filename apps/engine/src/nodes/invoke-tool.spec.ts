import { describe, expect, it } from '@jest/globals';
import { type Json, type JsonObject, type ToolReply, WopError } from '@isthmus/protocol';
import { enter, type Entering, FakeTool } from './enter.suite.js';
import type { Result } from './node-type.js';

const TYPE = 'core.openwop.mcp.invoke-tool';
const config = { serverId: 'remote', toolName: 'echo' };
const complete = (result: JsonObject, isError = false): ToolReply => ({ is: 'complete', result, isError, negotiatedVersion: '2026-07-28' });
const text = (...words: string[]): ToolReply => complete({ content: words.map((word) => ({ type: 'text', text: word })) });
const elicit = (
  params: JsonObject = {
    message: 'Who?',
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  },
) => ({
  method: 'elicitation/create',
  params,
});
const asks = (inputRequests: Record<string, JsonObject>, requestState?: string): ToolReply =>
  ({
    is: 'input_required',
    ...(requestState !== undefined && { requestState }),
    inputRequests,
    negotiatedVersion: '2026-07-28',
  }) as ToolReply;
const call = async (tool: FakeTool, entering: Entering = {}): Promise<Result> =>
  (await enter(TYPE, { config, tool, ...entering })) as Result;
const accept = { action: 'accept', answers: { name: 'Ada' } };

describe('a tool node that gets a result', () => {
  it.each<[string, ToolReply, Json]>([
    ['structured content', complete({ content: [{ type: 'text', text: 'x' }], structuredContent: { a: 1 } }), { a: 1 }],
    ['structured content that is null', complete({ content: [], structuredContent: null }), null],
    ['texts', text('one', 'two'), 'one\ntwo'],
    ['nothing', complete({ content: [] }), ''],
    ['no content at all', complete({}), ''],
    [
      'other blocks',
      complete({
        content: [
          { type: 'image', data: 'x' },
          { type: 'text', text: 'y' },
        ],
      }),
      [
        { type: 'image', data: 'x' },
        { type: 'text', text: 'y' },
      ],
    ],
  ])('gives %s to the graph', async (_what, reply, result) => {
    const ended = await call(new FakeTool(() => reply));
    expect(ended).toMatchObject({ is: 'completed', untrusted: true, outputs: { result, isError: false, untrustedContent: true } });
    const { markedContent } = (ended as { outputs: JsonObject }).outputs;
    if (result === null) expect(markedContent).toBeUndefined();
    else expect(markedContent).toBe(`<UNTRUSTED tool="echo">${typeof result === 'string' ? result : JSON.stringify(result)}</UNTRUSTED>`);
  });

  it('calls with its arguments and its deadline', async () => {
    const tool = new FakeTool(() => text('x'));
    await call(tool, { inputs: { args: { q: 1 } } });
    await call(tool, { config: { ...config, timeoutMs: 500 } });
    expect(tool.begun).toEqual([
      { ...config, args: { q: 1 }, timeoutMs: 30_000 },
      { ...config, args: {}, timeoutMs: 500 },
    ]);
  });

  it('completes when the tool says that it failed, and tells so', async () => {
    const ended = await call(new FakeTool(() => complete({ content: [{ type: 'text', text: 'no such city' }] }, true)));
    expect(ended).toMatchObject({
      is: 'completed',
      outputs: { isError: true, result: 'no such city' },
      before: [{ payload: { status: 'error', isError: true } }],
    });
  });

  it('closes the pair of events with status, value and version before it completes', async () => {
    const ended = await call(new FakeTool(() => text('x')));
    expect(ended).toMatchObject({
      before: [
        {
          type: 'agent.toolReturned',
          payload: { status: 'ok', isError: false, negotiatedVersion: '2026-07-28', value: { content: [{ type: 'text', text: 'x' }] } },
        },
      ],
    });
  });
});

describe('a tool node that is asked', () => {
  it('asks people with one question per member of the form, and keeps the form as it came', async () => {
    const asked = await call(new FakeTool(() => asks({ who: elicit() }, 'state')));
    expect(asked).toMatchObject({
      is: 'suspended',
      requests: [
        {
          untrusted: true,
          request: {
            kind: 'clarification',
            key: 'n:0/1/who',
            data: { contextType: 'mcp-elicitation', message: 'Who?', questions: [{ id: 'name', question: 'Who?', required: true }] },
            metadata: {
              mcp: {
                inputRequestKey: 'who',
                serverId: 'remote',
                toolName: 'echo',
                message: 'Who?',
                requestedSchema: elicit().params['requestedSchema'],
              },
            },
          },
        },
      ],
    });
    expect(JSON.stringify(asked)).not.toContain('state');
  });

  it('retries with the answers and with the exact state it was given', async () => {
    const state = 'odd {"} \\u0000 é 😀 ';
    const tool = new FakeTool((round) => (round === 0 ? asks({ who: elicit() }, state) : text('hello')));
    expect(await call(tool, { answers: { 'n:0/1/who': accept } })).toMatchObject({ is: 'completed', outputs: { result: 'hello' } });
    expect(tool.sent).toEqual([
      { round: 0, retry: undefined },
      { round: 1, retry: { requestState: state, inputResponses: { who: { action: 'accept', content: { name: 'Ada' } } } } },
    ]);
  });

  it('sends no state where it was given none', async () => {
    const tool = new FakeTool((round) => (round === 0 ? asks({ who: elicit() }) : text('hello')));
    await call(tool, { answers: { 'n:0/1/who': accept } });
    expect(tool.sent[1]?.retry).toStrictEqual({ inputResponses: { who: { action: 'accept', content: { name: 'Ada' } } } });
  });

  it('waits until every request of a round is answered, and asks only for what is missing', async () => {
    const tool = new FakeTool((round) => (round === 0 ? asks({ a: elicit(), b: elicit() }, 's') : text('hello')));
    expect(await call(tool)).toMatchObject({ requests: [{ request: { key: 'n:0/1/a' } }, { request: { key: 'n:0/1/b' } }] });
    const half = await call(tool, { answers: { 'n:0/1/b': accept } });
    expect(half).toMatchObject({ is: 'suspended', requests: [{ request: { key: 'n:0/1/a' } }] });
    expect(tool.sent).toHaveLength(1);
    await call(tool, { answers: { 'n:0/1/a': { action: 'decline', answers: {} }, 'n:0/1/b': accept } });
    expect(tool.sent[1]?.retry).toMatchObject({
      inputResponses: { a: { action: 'decline' }, b: { action: 'accept', content: { name: 'Ada' } } },
    });
  });

  it('tells rounds apart that ask with the same key', async () => {
    const tool = new FakeTool((round) => (round < 2 ? asks({ who: elicit() }, `s${round}`) : text('hello')));
    const first = { 'n:0/1/who': accept };
    expect(await call(tool, { answers: first })).toMatchObject({ requests: [{ request: { key: 'n:0/2/who' } }] });
    expect(await call(tool, { answers: { ...first, 'n:0/2/who': accept } })).toMatchObject({ outputs: { result: 'hello' } });
    expect(tool.sent.map(({ round }) => round)).toEqual([0, 1, 2]);
  });

  it('asks with keys that no node of any id could ask with', async () => {
    const asked = await call(new FakeTool(() => asks({ 'b:0:1:x': elicit(), '../n': elicit() })));
    for (const { request } of (asked as Extract<Result, { is: 'suspended' }>).requests)
      expect(request.key).not.toMatch(/^[A-Za-z0-9._~:-]{1,128}$/);
  });

  it.each<[string, JsonObject]>([
    ['sampling', { method: 'sampling/createMessage', params: {} }],
    ['roots', { method: 'roots/list' }],
    ['an elicitation that is none', { method: 'elicitation/create', params: { mode: 'url', url: 'https://x' } }],
    ['an elicitation of no object', { method: 'elicitation/create', params: { message: 'x', requestedSchema: { type: 'string' } } }],
  ])('gives up when it is asked for %s, which it did not offer', async (_what, request) => {
    const ended = await call(new FakeTool(() => asks({ who: elicit(), other: request })));
    expect(ended).toMatchObject({
      is: 'failed',
      error: { code: 'mcp_tool_invocation_failed' },
      before: [{ payload: { status: 'error' } }],
    });
  });

  it('gives up after eight rounds', async () => {
    const tool = new FakeTool((round) => asks({ who: elicit() }, `s${round}`));
    const answers = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`n:0/${index + 1}/who`, accept]));
    expect(await call(tool, { answers })).toMatchObject({
      is: 'failed',
      error: { code: 'mcp_mrtr_rounds_exceeded' },
      before: [{ payload: { status: 'error' } }],
    });
    expect(tool.sent).toHaveLength(9);
  });
});

describe('a tool node that is refused', () => {
  it.each<[ConstructorParameters<typeof WopError>[0], string]>([
    ['forbidden', 'forbidden'],
    ['rate_limited', 'rate_limited'],
    ['mcp_tool_not_found', 'error'],
    ['node_outcome_unknown', 'error'],
  ])('fails with the code %s, and the event says %s', async (code, status) => {
    const ended = await call(new FakeTool(() => new WopError(code, 'No.', { why: 1 })));
    expect(ended).toEqual({
      is: 'failed',
      error: { code, message: 'No.', details: { why: 1 } },
      before: [{ type: 'agent.toolReturned', payload: { status, error: { code, message: 'No.' } } }],
    });
  });

  it('lets a fault of ours pass: it is no outcome, and the node will be entered again', async () => {
    await expect(call(new FakeTool(() => new Error('the lease is gone')))).rejects.toThrow('the lease is gone');
  });

  it.each<JsonObject>([
    { toolName: 't' },
    { serverId: 's' },
    { ...config, timeoutMs: 99 },
    { ...config, timeoutMs: 300_001 },
    { ...config, serverId: '' },
  ])('by its own config: %j', async (wrong) => {
    expect(await enter(TYPE, { config: wrong })).toMatchObject({ is: 'invalid' });
  });
});
