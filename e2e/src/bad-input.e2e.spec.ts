import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ERRORS, isErrorCode, LIMITS, type Route, ROUTES } from '@isthmus/protocol';
import { type TestDatabase, testDatabase, testNats } from '@isthmus/testing';
import { Client, type Sent } from './client.js';
import { chain, gate, node, noop, tool } from './make.js';
import { CAPABILITIES_KEY, Mount, request, VERSION_KEY } from './mcp.js';
import { rowCounts } from './operator.js';
import { faultsIn, type Stack, START_MS, startStack } from './stack.js';

let stack: Stack;
let database: TestDatabase;
let alice: Client;
let names: Readonly<Record<string, string>>;
let rows: Record<string, number>;

/** Stands in whatever is refused; nothing that leaves the host, logs included, may hold it. */
const CANARY = 'sk-canary0123456789abcdefghij';
const PLANS = chain('plans', [tool('deploy', { n: { type: 'integer' } }), gate()], { variables: [{ name: 'n', type: 'number' }] });

beforeAll(async () => {
  database = await testDatabase();
  // On servers that somebody else runs, as with DATABASE_URL and NATS_URL.
  stack = await startStack({ mode: 'plain', databaseUrl: database.adminUrl, natsUrl: testNats() });
  alice = new Client(stack.baseUrl, stack.keys.primary);
  await alice.register(PLANS);
  await alice.mount('server', { url: 'https://mcp.example.com/mcp' });
  const runId = await alice.start('plans');
  await alice.waiting(runId);
  names = { workflowId: 'plans', serverId: 'server', nodeId: 'gate', runId, webhookId: 'nobodys', token: 'nobodys' };
  await alice.run(runId); // the first who looks at an open interrupt has the key made that signs its tokens
  rows = await rowCounts(stack);
}, START_MS);
afterAll(async () => {
  await stack?.stop();
  await database?.drop();
}, 60_000);

const routes = Object.entries(ROUTES as Readonly<Record<string, Route>>);
const withBody = routes.filter(([, route]) => route.body);
const withNames = routes.filter(([, { params }]) => params);
const addressOf = ({ path }: Route, given: Readonly<Record<string, string>> = names): string =>
  `${path}${path.endsWith(':diff') ? '?against=nobodys' : ''}`.replace(/\{(\w+)\}/g, (_, name: string) => given[name] ?? '');
const good: Readonly<Record<string, Record<string, unknown>>> = {
  createRun: { workflowId: 'plans' },
  cancelRun: {},
  resolveInterrupt: { resumeValue: { action: 'accept' } },
  putWorkflow: PLANS,
  putMount: { url: 'https://mcp.example.com/mcp' },
  bulkCancelRuns: { runIds: ['nobodys'] },
  pauseRun: {},
  resumeRun: {},
  forkRun: { mode: 'branch', fromSeq: 0 },
  resolveInterruptByToken: { resumeValue: { action: 'accept' } },
  createWebhook: { url: 'https://hooks.example.com/', events: ['run.completed'] },
};

/** Stacks, SQL and libraries: what a refusal must not speak of. */
const INSIDE =
  /\bat .+\.[cm]?[jt]s:\d|node_modules|\b(select|insert|update|delete)\b.+\b(from|into|set|where)\b|relation "|duplicate key|violates|syntax error at|prisma|postgres|zod/i;

/** A refusal in the one closed envelope, with the status that its code has, and nothing of the inside or of what was sent. */
function expectRefusal({ status, text, type }: { status: number; text: string; type: string | null }): { error: string } {
  expect(text).not.toContain(CANARY);
  expect(text).not.toContain(stack.keys.primary);
  expect(text).not.toMatch(INSIDE);
  expect(type).toBe('application/json; charset=utf-8');
  const body = JSON.parse(text) as { error: string; message: string };
  expect(Object.keys(body).filter((name) => !['error', 'message', 'details'].includes(name))).toEqual([]);
  expect(body.message).toMatch(/\w/);
  expect(isErrorCode(body.error) && ERRORS[body.error].status).toBe(status);
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status).toBeLessThan(500);
  return body;
}
async function refused(method: string, path: string, sent: Sent = {}): Promise<{ status: number; error: string }> {
  const { status, headers, text } = await alice.ask(method, path, sent);
  return { status, error: expectRefusal({ status, text, type: headers.get('content-type') }).error };
}
/** As the bytes are, for what no client library would send. */
async function asBytes(lines: readonly string[], body = ''): Promise<{ status: number; text: string; type: string | null }> {
  const { hostname, port } = new URL(stack.baseUrl);
  const socket = connect(Number(port), hostname);
  socket.write(Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1'));
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  const [head = '', ...rest] = Buffer.concat(chunks).toString().split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), text: rest.join('\r\n\r\n'), type: /content-type: (.*)/i.exec(head)?.[1]?.trim() ?? null };
}

const nested = (levels: number, inner: unknown = CANARY): unknown =>
  JSON.parse(`${'{"a":'.repeat(levels)}${JSON.stringify(inner)}${'}'.repeat(levels)}`);
const long = 'x'.repeat(LIMITS.maxRequestBodyBytes);

/** No document at all, or one that no route takes. */
const DOCUMENTS: readonly (readonly [string, string | Uint8Array, number])[] = [
  ['half a document', `{"a":"${CANARY}`, 400],
  ['two documents', '{}{}', 400],
  ['a list', `["${CANARY}"]`, 400],
  ['a text', `"${CANARY}"`, 400],
  ['a number', '5', 400],
  ['null', 'null', 400],
  ['nothing but space', '   ', 400],
  ['bytes that are no UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]), 400],
  ['UTF-16', new Uint8Array(Buffer.from('{"a":1}', 'utf16le')), 400],
  ['U+0000', `{"a":"${CANARY}\\u0000"}`, 400],
  ['U+0000 in a name', '{"\\u0000":1}', 400],
  ['half of a surrogate pair', '{"a":"\\ud83d"}', 400],
  ['the other half', '{"a":["\\ude00"]}', 400],
  ['a prototype', '{"__proto__":{"isAdmin":true}}', 400],
  ['a prototype deep inside', '{"inputs":{"a":{"__proto__":{}}}}', 400],
  ['a number beyond all numbers', '{"a":1e999}', 400],
  ['one level too many', JSON.stringify(nested(65)), 400],
  ['a hundred thousand levels', `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 400],
  ['more bytes than are taken', `{"a":"${long}"}`, 413],
];

/** A body that is good but for one value, where its author may put what he likes. */
const WITH: Readonly<Record<string, (value: string) => string>> = {
  createRun: (value) => `{"workflowId":"plans","inputs":{"free":${value}}}`,
  cancelRun: (value) => `{"reason":${value}}`,
  resolveInterrupt: (value) => `{"resumeValue":{"action":"accept","free":${value}}}`,
  putWorkflow: (value) => JSON.stringify({ ...PLANS, metadata: { free: 0 } }).replace('"free":0', `"free":${value}`),
  putMount: (value) => `{"url":"https://mcp.example.com/mcp","description":${value}}`,
  bulkCancelRuns: (value) => `{"runIds":["nobodys"],"reason":${value}}`,
  pauseRun: (value) => `{"reason":${value}}`,
  resumeRun: (value) => `{"reason":${value}}`,
  forkRun: (value) => `{"mode":"branch","fromSeq":0,"runOptionsOverlay":{"metadata":{"free":${value}}}}`,
  resolveInterruptByToken: (value) => `{"resumeValue":{"action":"accept","free":${value}}}`,
  createWebhook: (value) => `{"url":"https://hooks.example.com/","events":["run.completed"],"secret":${value}}`,
};
const VALUES: readonly (readonly [string, string])[] = [
  ['U+0000', '"a\\u0000b"'],
  ['half of a surrogate pair', '"\\ud83d"'],
  ['the other half', '"\\ude00 "'],
  ['a prototype', '{"__proto__":{"isAdmin":true}}'],
  ['U+0000 in a name', '{"\\u0000":1}'],
  ['a number beyond all numbers', '-1e999'],
  ['more levels than are taken', JSON.stringify(nested(64))],
];

describe.each(withBody)('the body of %s', (name, route) => {
  const send = (body: unknown, headers?: Record<string, string>) =>
    refused(route.method, addressOf(route), { body, ...(headers && { headers }) });

  it.each(DOCUMENTS)('may not be %s', async (_, body, status) => {
    expect((await send(body)).status).toBe(status);
  });

  it.each(VALUES)('may not hold %s, where anything else may stand', async (_, value) => {
    expect(await send(WITH[name]?.(value))).toEqual({ status: 400, error: 'validation_error' });
  });

  it('may not have a member that nobody knows', async () => {
    for (const surprise of ['surprise', 'constructor', 'toString', CANARY, '💥', '', 'a.b', '$ref'])
      expect(await send({ ...good[name], [surprise]: 1 })).toEqual({ status: 400, error: 'validation_error' });
  });

  it('may have no member of another kind', async () => {
    for (const member of Object.keys((route.body as { shape?: object; unwrap?: () => { shape: object } }).shape ?? { reason: 0 }))
      for (const value of [null, 5, CANARY, true, [CANARY], { [CANARY]: CANARY }, 1e308, -1, '', '\u202e\ufeff', 'x'.repeat(20_000)]) {
        const sent = { ...good[name], [member]: value };
        if (route.body?.safeParse(sent).success) continue;
        expect(await send(sent)).toEqual({ status: 400, error: 'validation_error' });
      }
  });

  it('is JSON in UTF-8, as it is', async () => {
    const sent = JSON.stringify(good[name]);
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'nonsense',
      'application/json; charset=utf-16',
    ])
      expect((await send(sent, { 'content-type': type })).status).toBe(415);
    expect((await send(sent, { 'content-encoding': 'gzip' })).status).toBe(415);
  });
});

describe('a run', () => {
  it.each<[string, object]>([
    ['of a workflow nobody has', { workflowId: 'no-such' }],
    ['of a workflow that is called like a secret', { workflowId: CANARY }],
    ['of a workflow with an impossible name', { workflowId: '../../etc/passwd' }],
    ['with an input of another type', { inputs: { n: CANARY } }],
    ['with a bound that is none', { configurable: { recursionLimit: 0 } }],
    ['with a bound that is a text', { configurable: { runTimeoutMs: CANARY } }],
    ['with a bound beyond all numbers', { configurable: { recursionLimit: 2 ** 60 } }],
    ['with metadata five levels deep', { metadata: nested(5) }],
    ['with too much metadata', { metadata: { a: 'x'.repeat(8_200) } }],
    ['with too many tags', { tags: Array.from({ length: 101 }, String) }],
    ['with an empty tag', { tags: [''] }],
    ['with a tag that is too long', { tags: ['x'.repeat(257)] }],
  ])('%s is not started', async (_, more) => {
    expect(await refused('POST', '/v1/runs', { body: { workflowId: 'plans', ...more } })).toEqual({
      status: 400,
      error: 'validation_error',
    });
  });

  it.each(['', 'x'.repeat(256)])('is not started under the key %j', async (key) => {
    expect(await refused('POST', '/v1/runs', { body: { workflowId: 'plans' }, headers: { 'idempotency-key': key } })).toEqual({
      status: 400,
      error: 'idempotency_key_invalid',
    });
  });

  it.each<[unknown]>([
    [null],
    [5],
    ['accept'],
    [[]],
    [{}],
    [{ action: 'explode' }],
    [{ action: CANARY }],
    [{ action: 'accept', comment: 5 }],
    [{ action: 'refine' }],
    [{ action: 'edit-accept' }],
    [{ action: 'accept', voter: {} }],
    [{ action: 'constructor' }],
    [nested(60)],
  ])('is not moved on by the answer %j', async (resumeValue) => {
    expect((await refused('POST', `/v1/runs/${names['runId']}/interrupts/gate`, { body: { resumeValue } })).status).toBe(400);
  });
});

describe('a definition', () => {
  const path = '/v1/host/isthmus/workflows/new';
  const one = { id: 'new', name: 'new', nodes: [noop('a'), noop('b')], edges: [{ id: 'e', sourceNodeId: 'a', targetNodeId: 'b' }] };
  const edge = (rest: object) => ({ ...one, edges: [{ ...one.edges[0], ...rest }] });
  const exposed = (config: object) => ({ ...one, nodes: [node('a', 'core.openwop.mcp.expose-tool', config), noop('b')] });

  it.each<[string, object]>([
    ['without a name', { ...one, name: undefined }],
    ['of another id', { ...one, id: 'other' }],
    ['without nodes', { ...one, nodes: [] }],
    ['with too many nodes', { ...one, nodes: Array.from({ length: 1_001 }, (_, at) => noop(`n${at}`)) }],
    ['with two nodes of one id', { ...one, nodes: [noop('a'), noop('a'), noop('b')] }],
    ['that runs in a circle', { ...one, edges: [...one.edges, { id: 'back', sourceNodeId: 'b', targetNodeId: 'a' }] }],
    ['with an edge from nowhere', edge({ sourceNodeId: 'nowhere' })],
    ['with an edge to a prototype', edge({ targetNodeId: '__proto__' })],
    ['with an edge to itself', edge({ targetNodeId: 'a' })],
    ['with a rule nobody knows', edge({ triggerRule: CANARY })],
    ['with a condition of no kind', edge({ condition: { type: 'maybe' } })],
    ['with an expression that is none', edge({ condition: { type: 'expression', expression: '1 +' } })],
    ['with a pattern that is none', edge({ condition: { type: 'regex', left: 'output', right: '(' } })],
    ['with a type nobody knows', { ...one, nodes: [node('a', 'core.unheard'), noop('b')] }],
    ['with a type of Object', { ...one, nodes: [node('a', 'constructor'), noop('b')] }],
    ['with a node name of no kind', { ...one, nodes: [{ ...noop('a'), name: { [CANARY]: 1 } }, noop('b')] }],
    ['with an input of no kind', { ...one, nodes: [{ ...noop('a'), inputs: { x: { type: CANARY } } }, noop('b')] }],
    ['with a tool without a name', exposed({})],
    ['with a tool whose name has spaces', exposed({ name: 'two words' })],
    ['with a tool whose schema is a text', exposed({ name: 'x', inputSchema: CANARY })],
    ['with a variable of no type', { ...one, variables: [{ name: 'x', type: CANARY }] }],
    [
      'with variables of one name',
      {
        ...one,
        variables: [
          { name: 'x', type: 'string' },
          { name: 'x', type: 'number' },
        ],
      },
    ],
    ['with the tool of another workflow', exposed({ name: 'deploy' })],
  ])('%s is not registered', async (_, definition) => {
    expect((await refused('PUT', path, { body: definition })).status).toBeLessThan(423);
  });
});

describe('a remote server', () => {
  it.each<[object, string]>([
    [{ url: 'ftp://example.com/' }, 'validation_error'],
    [{ url: 'file:///etc/passwd' }, 'validation_error'],
    [{ url: 'javascript:alert(1)' }, 'validation_error'],
    [{ url: `https://user:${CANARY}@example.com/mcp` }, 'validation_error'],
    [{ url: 'https://example.com/mcp#part' }, 'validation_error'],
    [{ url: `https://example.com/${'x'.repeat(2_100)}` }, 'validation_error'],
    [{ url: 'https://example.com/mcp', versionPolicy: { allow: [] } }, 'validation_error'],
    [{ url: 'https://example.com/mcp', versionPolicy: { allow: ['1999-01-01'] } }, 'validation_error'],
    [{ url: 'https://example.com/mcp', transport: 'stdio' }, 'validation_error'],
    [{ url: 'https://example.com/mcp', toolAllowlist: [''] }, 'validation_error'],
    [{ url: 'https://example.com/mcp', repeatUnknown: CANARY }, 'validation_error'],
    [{ url: 'http://127.0.0.1:1/mcp' }, 'egress_denied'],
    [{ url: 'http://localhost/mcp' }, 'egress_denied'],
    [{ url: 'http://2130706433/mcp' }, 'egress_denied'],
    [{ url: 'http://[::1]/mcp' }, 'egress_denied'],
    [{ url: 'http://[::ffff:10.0.0.1]/mcp' }, 'egress_denied'],
    [{ url: 'http://169.254.169.254/latest/meta-data' }, 'egress_denied'],
  ])('%j is not registered', async (spec, error) => {
    expect((await refused('PUT', '/v1/host/isthmus/mounts/new', { body: spec })).error).toBe(error);
  });
});

describe.each(withNames)('the address of %s', (_, route) => {
  const NAMES = [
    '💥',
    'Ünïcödé',
    '名前',
    'שלום',
    'a\u0301',
    '\u202eevil',
    '%',
    '"',
    "' or 1=1 --",
    '<script>',
    'a b',
    '\u0000',
    '\u0007',
    '\ufeff',
    '../../etc/passwd',
    '..\\..',
    'a;b',
    '{runId}',
    `${CANARY} `,
    'x'.repeat(129),
    'x'.repeat(5_000),
  ].map(encodeURIComponent);
  const BROKEN = ['%', '%zz', '%c3%28', '%ff%fe', '%ed%a0%bd'];

  it('names nothing by any name that nothing can have', async () => {
    for (const name of Object.keys(route.params?.shape ?? {}))
      for (const bad of [...NAMES, ...BROKEN]) {
        const sent = route.body
          ? { body: { ...good[route.operationId], ...good['putMount'], ...(route.path.includes('workflows') && PLANS), id: undefined } }
          : {};
        const address = addressOf(route, { ...names, [name]: bad });
        const answer = await asBytes(
          [
            `${route.method} ${address} HTTP/1.1`,
            'Host: localhost',
            'Connection: close',
            `Authorization: Bearer ${stack.keys.primary}`,
            ...(route.body ? ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(JSON.stringify(sent.body))}`] : []),
          ],
          route.body ? JSON.stringify(sent.body) : '',
        );
        expectRefusal(answer);
        // Where a verb would stand behind the name, what is no name may be an address that only others ask.
        expect([400, 404, ...(route.path.includes('}:') ? [405] : [])]).toContain(answer.status);
      }
  }, 30_000);
});

describe('a name that looks like a secret', () => {
  it.each(withNames.filter(([, { method }]) => method !== 'PUT'))(
    'is not repeated by %s, although it could be one',
    async (name, route) => {
      for (const given of Object.keys(route.params?.shape ?? {})) {
        const address = addressOf(route, { ...names, [given]: CANARY });
        expect((await refused(route.method, address, good[name] ? { body: good[name] } : {})).status).toBe(404);
      }
    },
  );
});

describe('a query', () => {
  const base64 = (text: string): string => Buffer.from(text).toString('base64url');
  const LISTS = ['/v1/host/isthmus/runs', '/v1/host/isthmus/workflows', '/v1/host/isthmus/mounts'];
  const BAD = [
    ...LISTS.flatMap((path) =>
      [
        'limit=-1',
        'limit=0',
        'limit=501',
        'limit=1e2',
        'limit=x',
        'limit=',
        'limit=9999999999999999999',
        'limit=1&limit=2',
        `cursor=${'x'.repeat(501)}`,
        'cursor=%00',
        'cursor=a&cursor=b',
        '__proto__=1',
        'limit[]=1&limit=x',
      ].map((query) => `${path}?${query}`),
    ),
    ...['%F0%9F%92%A5', '', 'a%20b'].flatMap((cursor) => LISTS.map((path) => `${path}?cursor=${cursor}`)),
    // Wrapped ids: what they wrap must be one.
    ...['garbage', base64('\u0000'), base64("' or 1=1")].flatMap((cursor) => LISTS.slice(0, 2).map((path) => `${path}?cursor=${cursor}`)),
    `/v1/host/isthmus/runs?cursor=${base64('-'.repeat(36))}`,
    ...[
      'status=nonsense',
      'status=',
      'status=completed,nonsense',
      'workflowId=a%20b',
      'tag=',
      `tag=${'x'.repeat(257)}`,
      'tag=%00',
      'status=constructor',
    ].map((query) => `/v1/host/isthmus/runs?${query}`),
    ...[
      'lastSequence=-1',
      'lastSequence=1.5',
      'lastSequence=1e3',
      'lastSequence=x',
      'lastSequence=',
      'lastSequence=99999999999',
      'since=-1',
      'timeout=0',
      'timeout=61',
      'timeout=x',
      'lastSequence=1&lastSequence=2',
    ].map((query) => `/events/poll?${query}`),
    ...[
      'streamMode=',
      'streamMode=nonsense',
      'streamMode=updates,nonsense',
      'streamMode=__proto__',
      'streamMode=%F0%9F%92%A5',
      'streamMode=debug&streamMode=updates',
      `streamMode=${'x'.repeat(201)}`,
    ].map((query) => `/events?${query}`),
  ];

  it.each(BAD)('%s is 400', async (path) => {
    const address = path.startsWith('/events') ? `/v1/runs/${names['runId']}${path}` : path;
    expect((await refused('GET', address, { headers: { accept: 'application/json' } })).status).toBe(400);
  });

  it.each(['-1', 'x', '1.5', '99999999999999999999', '\u00ff', '0x10'])('a place of %j in a stream is as good as none', async (place) => {
    const leave = new AbortController();
    for await (const { id } of alice.follow(names['runId'] as string, { after: place, signal: leave.signal })) {
      expect(id).toBe('0');
      break;
    }
    leave.abort();
  });
});

describe('headers', () => {
  const DOORS = ['/v1/runs', '/mcp'];
  const line = (door: string, ...more: string[]) => [
    `POST ${door} HTTP/1.1`,
    'Connection: close',
    'Content-Length: 2',
    ...['Host: localhost', 'Content-Type: application/json', `Authorization: Bearer ${stack.keys.primary}`].filter(
      (usual) => !more.some((other) => other.startsWith(`!${usual.split(':')[0]}`)),
    ),
    ...more.map((text) => text.replace(/^!/, '')),
  ];

  it.each<[string, readonly string[]]>([
    ['a second credential', ['authorization: Bearer other']],
    ['two credentials in one', ['!Authorization: Bearer one, Bearer two']],
    ['a second key', ['Idempotency-Key: a', 'idempotency-key: b']],
    ['two keys in one', ['Idempotency-Key: a,b']],
    ['a second type', ['Content-Type: text/plain']],
    ['two types in one', ['!Content-Type: application/json, text/plain']],
    ['a second host', ['host: elsewhere']],
    ['two hosts in one', ['!Host: localhost, elsewhere']],
    ['no host', ['!Host']],
    ['a second length', ['Content-Length: 2']],
    ['another length', ['Content-Length: 3']],
    ['a length and chunks', ['Transfer-Encoding: chunked']],
    ['chunks of another kind', ['Transfer-Encoding: gzip, chunked']],
    ['two methods', ['Mcp-Method: tools/list', 'mcp-method: tools/call']],
    ['two revisions in one', ['MCP-Protocol-Version: 2026-07-28, 2025-11-25']],
    ['a header that is none', ['bad header : x']],
    ['a control character', ['Idempotency-Key: a\u0001b']],
  ])('with %s are refused', async (_, more) => {
    for (const door of DOORS) {
      const { status, text } = await asBytes(line(door, ...more.filter((text) => text !== '!Host' || text)), '{}');
      expect([door, status]).toEqual([door, more[0]?.startsWith('!Host: ') && door === '/mcp' ? 403 : 400]);
      expect(text).not.toContain(stack.keys.primary);
      expect(text).not.toMatch(INSIDE);
    }
  });

  it('that are larger than is taken are 431', async () => {
    for (const door of DOORS) expect((await asBytes(line(door, `X-Big: ${'x'.repeat(40_000)}`), '{}')).status).toBe(431);
  });

  it.each(['Basic YTpi', 'Bearer', 'Bearer ', 'Bearer a b', `Bearer ${'x'.repeat(5_000)}`, 'Bearer \u00ff\u00fe', CANARY])(
    'that say %j are no credential',
    async (value) => {
      const { status, text } = await asBytes(line('/v1/runs', `!Authorization: ${value}`), '{}');
      expect([status, (JSON.parse(text) as { error: string }).error]).toEqual([401, 'unauthenticated']);
      expect(text).not.toContain(CANARY);
    },
  );

  it('about traces, caches and languages may say what they like', async () => {
    const headers = {
      traceparent: 'nonsense',
      tracestate: ',,,=',
      baggage: '💥'.replace(/./gu, '?'),
      'if-none-match': '"',
      'accept-language': '*',
      accept: 'x',
      range: 'bytes=0-',
    };
    expect((await alice.ask('GET', `/v1/runs/${names['runId']}`, { headers })).status).toBe(200);
  });

  it.each(['nonsense', 'GET / HTTP/9.9', 'GET  /  HTTP/1.1', '\u0016\u0003\u0001\u0002', `GET /${'x'.repeat(70_000)} HTTP/1.1`])(
    'of no HTTP (%#) are answered in the envelope',
    async (first) => {
      const answer = await asBytes([first, 'Host: localhost', 'Connection: close']);
      expectRefusal(answer);
    },
  );
});

describe('a message to the mount', () => {
  const call = (params: object, meta: object = {}) => {
    const { body, headers } = request('tools/call', { name: 'deploy', arguments: {}, ...params }, meta as never);
    const { name } = body['params'] as { name?: unknown };
    return {
      body,
      headers: { ...headers, ...(typeof name === 'string' && { 'mcp-name': `=?base64?${Buffer.from(name).toString('base64')}?=` }) },
    };
  };
  const list = request('tools/list');
  const KNOWN = [-32700, -32600, -32601, -32602, -32020, -32021, -32022];

  async function refusedRpc(body: unknown, headers: Readonly<Record<string, string>>): Promise<number> {
    const mount = new Mount(stack.mcpUrl, stack.keys.primary);
    const { status, text, error } = await mount.post(body, headers);
    expect(text).not.toContain(CANARY);
    expect(text).not.toMatch(INSIDE);
    expect(status).toBeLessThan(500);
    expect(KNOWN).toContain(error?.code);
    expect(Object.keys(JSON.parse(text) as object).filter((name) => !['jsonrpc', 'id', 'error'].includes(name))).toEqual([]);
    return error?.code as number;
  }

  it.each(DOCUMENTS)('may not be %s', async (_, body) => {
    await refusedRpc(body, list.headers);
  });

  it.each<[string, object, number]>([
    ['no version of JSON-RPC', { jsonrpc: undefined }, -32600],
    ['another version of JSON-RPC', { jsonrpc: '1.0' }, -32600],
    ['no method', { method: undefined }, -32600],
    ['a method of no kind', { method: { [CANARY]: 1 } }, -32600],
    ['a method of Object', { method: 'constructor' }, -32020],
    ['an id of null', { id: null }, -32600],
    ['an id that is a fraction', { id: 1.5 }, -32600],
    ['an id that is an object', { id: {} }, -32600],
    ['params in a list', { params: [CANARY] }, -32600],
    ['params of text', { params: CANARY }, -32600],
    ['a result', { method: undefined, result: CANARY }, -32600],
    ['a cursor nobody gave out', { params: { ...(list.body['params'] as object), cursor: CANARY } }, -32602],
    ['a cursor of no kind', { params: { ...(list.body['params'] as object), cursor: 5 } }, -32602],
    ['capabilities of no kind', { params: { _meta: { [VERSION_KEY]: '2026-07-28', [CAPABILITIES_KEY]: CANARY } } }, -32602],
    ['a version of no kind', { params: { _meta: { [VERSION_KEY]: 5, [CAPABILITIES_KEY]: {} } } }, -32020],
    ['U+0000 in its params', { params: { ...(list.body['params'] as object), x: '\u0000' } }, -32602],
    ['params deeper than is taken', { params: { ...(list.body['params'] as object), x: nested(70) } }, -32602],
  ])('with %s is refused', async (_, more, code) => {
    expect(await refusedRpc({ ...list.body, ...more }, list.headers)).toBe(code);
  });

  it.each<[string, object, object?]>([
    ['no name', { name: undefined }],
    ['a name of no kind', { name: 5 }],
    ['a name nobody gave', { name: '💥' }],
    ['a name of Object', { name: 'constructor' }],
    ['a name that is too long', { name: 'x'.repeat(10_000) }],
    ['the name of a secret', { name: CANARY }],
    ['arguments in a list', { arguments: [] }],
    ['arguments of text', { arguments: CANARY }],
    ['arguments of null', { arguments: null }],
    ['an argument nobody knows', { arguments: { [CANARY]: CANARY } }],
    ['an argument of another kind', { arguments: { n: CANARY } }],
    ['an argument that is a fraction', { arguments: { n: 1.5 } }],
    ['answers in a list', { inputResponses: [] }],
    ['answers of text', { inputResponses: CANARY }],
    ['a state of no kind', { requestState: { [CANARY]: 1 } }],
    ['an empty state', { requestState: '' }],
    ['a state of a megabyte', { requestState: 'x'.repeat(300_000) }],
    ['a key that is too long', {}, { 'dev.isthmus/idempotencyKey': 'x'.repeat(256) }],
    ['a key of no kind', {}, { 'dev.isthmus/idempotencyKey': { [CANARY]: 1 } }],
    ['an empty key', {}, { 'dev.isthmus/idempotencyKey': '' }],
  ])('that calls with %s is refused', async (_, params, meta = {}) => {
    const { body, headers } = call(params, meta);
    const small = Object.fromEntries(Object.entries(headers).filter(([name, value]) => name !== 'mcp-name' || value.length < 8_000));
    await refusedRpc(body, small);
  });
});

describe('after all of this', () => {
  it('nothing was written and nothing was moved', async () => {
    expect(await rowCounts(stack)).toEqual(rows);
    expect((await alice.run(names['runId'] as string)).status).toBe('waiting-approval');
  });

  it('no service speaks of a fault, and no log holds what was sent', () => {
    expect(faultsIn(stack)).toEqual([]);
    for (const secret of [CANARY, ...Object.values(stack.keys)]) expect(stack.logged.filter((line) => line.includes(secret))).toEqual([]);
  });
});
