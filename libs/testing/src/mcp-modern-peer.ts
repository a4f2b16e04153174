import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, createRequestStateCodec, inputRequired, inputResponse, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { type McpPeer, type PeerOptions, startPeer } from './mcp-peer.js';

export type ModernPeer = McpPeer & {
  /** Calls of `slow` that run now, and how many of them were given up by the client. */
  readonly slow: { readonly running: number; readonly aborted: number };
};

type Slow = { running: number; aborted: number };
type State = { round: number; answers: string[] };

/**
 * A remote MCP server that speaks 2026-07-28 and nothing older. Tools: `echo`, `needs_input` (asks `rounds` times, with a signed
 * `requestState`), `slow` (until it is aborted, or `ms`), `fail` (a result with isError), `big` (`bytes` of text).
 */
export async function modernPeer(options: PeerOptions = {}): Promise<ModernPeer> {
  const slow: Slow = { running: 0, aborted: 0 };
  const codec = createRequestStateCodec<State>({
    key: 'a key of the test peer, 32 bytes or more',
    ttlSeconds: 600,
    bind: (ctx) => ctx.mcpReq.method,
  });
  const handler = createMcpHandler(() => buildServer(codec, slow), { legacy: 'reject' });
  const serve = toNodeHandler(handler);
  const peer = await startPeer((request, response, body) => serve(request, response, body), options);
  return {
    ...peer,
    slow,
    close: async () => {
      await handler.close();
      await peer.close();
    },
  };
}

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });

function buildServer(codec: ReturnType<typeof createRequestStateCodec<State>>, slow: Slow): McpServer {
  const server = new McpServer(
    { name: 'modern-peer', version: '1.0.0' },
    { capabilities: { tools: {} }, requestState: { verify: codec.verify } },
  );

  server.registerTool(
    'echo',
    { description: 'Says it again', inputSchema: z.object({ text: z.string() }), annotations: { idempotentHint: true } },
    ({ text: said }) => ({
      ...text(said),
      structuredContent: { text: said },
    }),
  );

  server.registerTool(
    'needs_input',
    { description: 'Asks for a name, as often as told', inputSchema: z.object({ rounds: z.int().min(1).default(1) }) },
    async ({ rounds }, ctx) => {
      const state = ctx.mcpReq.requestState<State>() ?? { round: 0, answers: [] };
      const given = state.round > 0 ? inputResponse(ctx.mcpReq.inputResponses, `name-${state.round}`) : undefined;
      if (given?.kind === 'elicit' && given.action !== 'accept') return { ...text(`answered with ${given.action}`), isError: true };
      const answers = given?.kind === 'elicit' ? [...state.answers, String(given.content?.['name'])] : state.answers;
      if (answers.length >= rounds) return text(`hello ${answers.join(', ')}`);
      const round = answers.length + 1;
      return inputRequired({
        inputRequests: {
          [`name-${round}`]: inputRequired.elicit({ message: 'Who are you?', requestedSchema: z.object({ name: z.string() }) }),
        },
        requestState: await codec.mint({ round, answers }, ctx),
      });
    },
  );

  server.registerTool(
    'slow',
    { description: 'Takes its time', inputSchema: z.object({ ms: z.int().min(0).default(60_000) }) },
    async ({ ms }, ctx) => {
      slow.running += 1;
      const isAborted = await elapsedOrAborted(ms, ctx.mcpReq.signal);
      slow.running -= 1;
      if (isAborted) slow.aborted += 1;
      return text(isAborted ? 'given up' : 'done');
    },
  );

  server.registerTool(
    'fail',
    { description: 'Fails as tools do', inputSchema: z.object({ message: z.string().default('it did not work') }) },
    ({ message }) => ({
      ...text(message),
      isError: true,
    }),
  );

  server.registerTool('big', { description: 'Says much', inputSchema: z.object({ bytes: z.int().min(0).max(16_000_000) }) }, ({ bytes }) =>
    text('x'.repeat(bytes)),
  );

  return server;
}

/** @returns whether it was aborted */
function elapsedOrAborted(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => end(false), ms);
    const onAbort = () => end(true);
    function end(isAborted: boolean) {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      resolve(isAborted);
    }
    if (signal.aborted) end(true);
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}
