import { describe, expect, it } from '@jest/globals';
import { decodeSentinel, headerMap, refuseDifferences, refuseMissing } from './header-agreement.js';
import { paramHeaders } from './param-headers.js';
import { RpcError } from './rpc.js';

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const declared = paramHeaders({
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    count: { type: 'integer', 'x-mcp-header': 'Count' },
    dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
    deep: { type: 'object', properties: { id: { type: 'string', 'x-mcp-header': 'Deep-Id' } } },
  },
});
const params = { name: 'deploy', arguments: { region: 'eu', count: 42, dry: true, deep: { id: 'x' } }, _meta: { [VERSION]: '2026-07-28' } };
const FULL = {
  'MCP-Protocol-Version': '2026-07-28',
  'Mcp-Method': 'tools/call',
  'Mcp-Name': 'deploy',
  'Mcp-Param-Region': 'eu',
  'Mcp-Param-Count': '42',
  'Mcp-Param-Dry': 'true',
  'Mcp-Param-Deep-Id': 'x',
};
const codeOf = (work: () => void): number | undefined => {
  try {
    work();
    return undefined;
  } catch (error) {
    return error instanceof RpcError ? error.code : Number.NaN;
  }
};
const differences = (headers: Record<string, string>, body: object = params) =>
  codeOf(() => refuseDifferences(headerMap(Object.entries(headers)), 'tools/call', body as never, declared));
const missing = (headers: Record<string, string>, body: object = params) =>
  codeOf(() => refuseMissing(headerMap(Object.entries(headers)), 'tools/call', body as never, declared));

describe('header agreement', () => {
  it('accepts a request whose headers mirror its body', () => {
    expect(differences(FULL)).toBeUndefined();
    expect(missing(FULL)).toBeUndefined();
  });

  it.each(Object.keys(FULL))('refuses %s when it differs, and misses it when it is absent', (header) => {
    expect(differences({ ...FULL, [header]: 'other' })).toBe(-32020);
    const { [header as keyof typeof FULL]: _, ...rest } = FULL;
    expect(differences(rest)).toBeUndefined();
    expect(missing(rest)).toBe(-32020);
  });

  it.each([
    ['an integer with a zero fraction', { 'Mcp-Param-Count': '42.0' }, undefined],
    ['an integer in another notation', { 'Mcp-Param-Count': '4.2e1' }, -32020],
    ['a value in a sentinel', { 'Mcp-Param-Region': '=?base64?ZXU=?=', 'Mcp-Name': '=?base64?ZGVwbG95?=' }, undefined],
    ['a sentinel of something else', { 'Mcp-Name': '=?base64?ZGVwbG95IQ==?=' }, -32020],
    ['bad padding', { 'Mcp-Param-Region': '=?base64?ZXU?=' }, -32020],
    ['a bad alphabet', { 'Mcp-Param-Region': '=?base64?ZX U=?=' }, -32020],
    ['a sentinel around the method, which takes none', { 'Mcp-Method': `=?base64?${btoa('tools/call')}?=` }, -32020],
    ['another case of the value', { 'Mcp-Name': 'Deploy' }, -32020],
    ['another case of the header', { 'mcp-NAME': 'deploy' }, undefined],
    ['a header nobody declared', { 'Mcp-Param-Other': 'x' }, undefined],
  ])('%s', (_, headers, code) => {
    const names = Object.keys(headers).map((name) => name.toLowerCase());
    const rest = Object.fromEntries(Object.entries(FULL).filter(([name]) => !names.includes(name.toLowerCase())));
    expect(differences({ ...rest, ...(headers as object) })).toBe(code);
  });

  it('refuses a header that came twice', () => {
    expect(
      codeOf(() =>
        refuseDifferences(
          headerMap([
            ['mcp-name', 'deploy'],
            ['Mcp-Name', 'deploy'],
          ]),
          'tools/call',
          params,
          [],
        ),
      ),
    ).toBe(-32020);
  });

  it('expects no header for an argument that is absent or null, and refuses one', () => {
    const without = { ...params, arguments: { count: 42, dry: true, deep: { id: 'x' }, region: null } };
    const { 'Mcp-Param-Region': region, ...rest } = FULL;
    expect(missing(rest, without)).toBeUndefined();
    expect(differences({ ...rest, 'Mcp-Param-Region': region }, without)).toBe(-32020);
  });

  it('does not repeat a value in its refusal', () => {
    expect(() => refuseDifferences(headerMap([['mcp-name', 'sk-secret']]), 'tools/call', params, [])).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('sk-secret') as unknown, data: { mismatch: { header: 'Mcp-Name' } } }),
    );
  });
});

describe('the base64 sentinel', () => {
  it.each([
    ['us-west1', 'us-west1'],
    ['=?base64?SGVsbG8sIOS4lueVjA==?=', 'Hello, 世界'],
    ['=?base64?IHBhZGRlZCA=?=', ' padded '],
    ['=?base64?bGluZTEKbGluZTI=?=', 'line1\nline2'],
    ['=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=', '=?base64?literal?='],
    ['=?BASE64?ZXU=?=', '=?BASE64?ZXU=?='],
    ['=?base64?ZXU=', '=?base64?ZXU='],
    ['=?base64??=', ''],
    ['=?base64?/w==?=', undefined],
    ['=?base64?ZXV=?=', undefined],
  ])('%s', (header, text) => {
    expect(decodeSentinel(header)).toBe(text);
  });
});

describe('param headers', () => {
  it('are those of the three types that properties alone lead to, each name once', () => {
    const schema = {
      type: 'object',
      properties: {
        a: { type: 'string', 'x-mcp-header': 'A' },
        again: { type: 'string', 'x-mcp-header': 'a' },
        number: { type: 'number', 'x-mcp-header': 'N' },
        bad: { type: 'string', 'x-mcp-header': 'not a token' },
        list: { type: 'array', items: { type: 'string', 'x-mcp-header': 'L' } },
        o: { type: 'object', properties: { b: { type: 'boolean', 'x-mcp-header': 'B' } } },
      },
      anyOf: [{ properties: { c: { type: 'string', 'x-mcp-header': 'C' } } }],
    };
    expect(paramHeaders(schema)).toEqual([
      { name: 'A', path: ['a'], type: 'string' },
      { name: 'B', path: ['o', 'b'], type: 'boolean' },
    ]);
  });
});
