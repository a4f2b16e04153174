// The main job, in both directions, on parts that no one here wrote: a run calls a tool of a remote MCP server and waits for an
// approval; then an MCP client runs the same workflow as a tool. Talks to the stack over HTTP only, as anyone else would.
import path from 'node:path';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { root } from './paths.mjs';
import { freePort } from './stack/ports.mjs';
import { Supervised } from './stack/supervised.mjs';

const REVISION = '2026-07-28';
const TOOL = 'research';

/** A workflow that looks a topic up, asks a human, and is a tool of our own MCP mount. */
export const RESEARCH = {
  id: 'research',
  name: 'Research',
  description: 'Look a topic up with a remote tool, then have the result approved.',
  variables: [{ name: 'topic', type: 'string', required: true }],
  nodes: [
    {
      id: 'expose',
      typeId: 'core.openwop.mcp.expose-tool',
      config: {
        name: TOOL,
        description: 'Look a topic up and have the result approved.',
        inputSchema: { type: 'object', properties: { topic: { type: 'string' } }, required: ['topic'], additionalProperties: false },
      },
    },
    {
      id: 'lookup',
      typeId: 'core.openwop.mcp.invoke-tool',
      config: { serverId: 'everything', toolName: 'echo' },
      outputRole: 'primary', // what the run, and the tool, answers with
      inputs: { args: { type: 'expression', expression: '{"message": "All about " + variables.topic}' } },
    },
    {
      id: 'gate',
      typeId: 'core.approvalGate',
      config: { title: 'Publish what was found?', actions: ['accept', 'reject'] },
      inputs: { found: { type: 'connection', nodeId: 'lookup', outputKey: 'result' } }, // what the approver sees
    },
  ],
  edges: [
    { id: 'expose-lookup', sourceNodeId: 'expose', targetNodeId: 'lookup' },
    { id: 'lookup-gate', sourceNodeId: 'lookup', targetNodeId: 'gate' },
  ],
};

/** A remote MCP server: the public package, as its own process, on a free port. */
export async function startEverything(watch, logFile) {
  const port = await freePort();
  const main = path.join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
  const server = new Supervised(
    {
      name: 'everything',
      service: 'everything',
      logFile,
      launch: () => ({
        command: process.execPath,
        args: [main, 'streamableHttp'],
        cwd: root,
        env: { PATH: process.env.PATH, PORT: String(port) },
      }),
      // It answers 400 to a GET without session: any answer will do.
      isReady: async () => Boolean(await fetch(`http://127.0.0.1:${port}/mcp`, { signal: AbortSignal.timeout(2_000) })),
    },
    watch,
  );
  await server.start();
  return { url: `http://127.0.0.1:${port}/mcp`, stop: () => server.stop() };
}

export async function runMainJob(stack, { everythingUrl, signal }) {
  const api = restApi(stack, signal);
  console.log('\nThe main job');
  await registerRemoteServer(api, everythingUrl);
  await registerWorkflow(api);
  await runOverRest(api);
  await runOverMcp(stack, signal);
  suggest(stack);
}

async function registerRemoteServer(api, url) {
  await api('PUT', '/v1/host/isthmus/mounts/everything', { url, versionPolicy: { allow: ['2025-11-25', REVISION] } });
  console.log(`  1  remote MCP server "everything" registered (${url})`);
}

async function registerWorkflow(api) {
  await api('PUT', `/v1/host/isthmus/workflows/${RESEARCH.id}`, RESEARCH);
  console.log(`  2  workflow "${RESEARCH.id}" registered: ${RESEARCH.nodes.map((node) => node.id).join(' → ')}`);
}

async function runOverRest(api) {
  const { runId } = await api('POST', '/v1/runs', { workflowId: RESEARCH.id, inputs: { topic: 'isthmuses' } });
  console.log(`  3  run ${runId} started over REST`);
  const timeline = [];
  for await (const event of api.events(runId)) {
    timeline.push(event);
    if (event.type === 'node.suspended') await approve(api, runId);
  }
  print(timeline);
  const { status } = await api('GET', `/v1/runs/${runId}`);
  if (status !== 'completed') throw new Error(`the run ended as ${status}`);
}

async function approve(api, runId) {
  const { status, interrupt } = await api('GET', `/v1/runs/${runId}`);
  console.log(`     it waits (${status}) for "${interrupt?.payload?.title ?? 'an approval'}": approved`);
  await api('POST', `/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: 'accept' } });
}

function print(timeline) {
  const began = Date.parse(timeline[0]?.timestamp);
  for (const { sequence, type, timestamp, payload } of timeline) {
    const at = `+${Date.parse(timestamp) - began} ms`;
    console.log(`     ${String(sequence).padStart(3)}  ${at.padStart(9)}  ${type.padEnd(20)} ${payload?.nodeId ?? ''}`);
  }
}

/** As an outside MCP client: the official SDK, pinned to one revision, with nothing but a URL and a key. */
async function runOverMcp({ mcpUrl, keys }, signal) {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const client = new Client(
    { name: 'isthmus-demo', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: REVISION } } },
  );
  client.setRequestHandler('elicitation/create', ({ params }) => {
    const content = acceptingAnswer(params.requestedSchema);
    console.log(`     input_required: "${params.message}", answered ${JSON.stringify(content)}`);
    return { action: 'accept', content };
  });
  const transport = new StreamableHTTPClientTransport(new URL(mcpUrl), {
    requestInit: { headers: { authorization: `Bearer ${keys.primary}` } },
  });
  await client.connect(transport);
  try {
    const { tools } = await client.listTools();
    console.log(`  4  MCP client, revision ${client.getNegotiatedProtocolVersion()}, sees: ${tools.map((tool) => tool.name).join(', ')}`);
    const result = await client.callTool({ name: TOOL, arguments: { topic: 'land bridges' } }, { signal });
    console.log(`     result: ${(result.content ?? []).map((part) => part.text ?? part.type).join(' ')}`);
    if (result.isError) throw new Error('the tool call ended in an error');
  } finally {
    await client.close();
  }
}

/** The friendliest answer a form allows. */
function acceptingAnswer(schema) {
  const answerTo = ({ type, enum: values, oneOf, default: given }) => {
    const choices = values ?? oneOf?.map((choice) => choice.const);
    if (choices) return choices.find((choice) => choice === 'accept') ?? choices[0];
    if (type === 'boolean') return true;
    if (type === 'number' || type === 'integer') return given ?? 1;
    return given ?? 'fine';
  };
  const required = new Set(schema?.required ?? []);
  const entries = Object.entries(schema?.properties ?? {}).filter(([name]) => required.has(name) || required.size === 0);
  return Object.fromEntries(entries.map(([name, property]) => [name, answerTo(property)]));
}

function suggest({ baseUrl, mcpUrl }) {
  const key = `KEY=$(node -p "require('./.dev/stack.json').keys.primary")`;
  const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"${REVISION}","io.modelcontextprotocol/clientInfo":{"name":"curl","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`;
  console.log(`
Try next (first: ${key})
  curl -s ${baseUrl}/.well-known/openwop
  curl -s ${baseUrl}/v1/runs -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"workflowId":"research","inputs":{"topic":"canals"}}'
  curl -s ${mcpUrl} -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: ${REVISION}' -H 'Mcp-Method: tools/list' -d '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{${meta}}}'`);
}

/** `api(method, path, body)` and `api.events(runId)`, as the demo tenant. */
function restApi({ baseUrl, keys }, signal) {
  const call = async (method, path, { body, headers } = {}) => {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      signal,
      headers: { authorization: `Bearer ${keys.primary}`, ...(body && { 'content-type': 'application/json' }), ...headers },
      body: body && JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${await response.text()}`);
    return response;
  };
  const api = async (method, path, body) => (await call(method, path, { body })).json();
  api.events = async function* (runId) {
    const response = await call('GET', `/v1/runs/${runId}/events`, { headers: { accept: 'text/event-stream' } });
    const frames = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
    for await (const { data } of frames) yield JSON.parse(data);
  };
  return api;
}
