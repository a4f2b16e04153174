import { randomUUID } from 'node:crypto';
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { isInitializeRequest, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { type McpPeer, type PeerOptions, startPeer } from './mcp-peer.js';

export type LegacyPeer = McpPeer & { readonly sessions: ReadonlySet<string> };

/** A remote MCP server of the handshake era (2025-11-25), with sessions and nothing newer. Tool: `echo`. */
export async function legacyPeer(options: PeerOptions = {}): Promise<LegacyPeer> {
  const transports = new Map<string, NodeStreamableHTTPServerTransport>();
  const sessions = new Set<string>();
  const peer = await startPeer(async (request, response, body) => {
    const id = request.headers['mcp-session-id'];
    const known = typeof id === 'string' ? transports.get(id) : undefined;
    if (known) return known.handleRequest(request, response, body);
    if (id !== undefined) return refuse(response, 404, -32001, 'Session not found');
    // What a server of that era says to a request it does not know, a modern one included.
    if (!isInitializeRequest(body)) return refuse(response, 400, -32000, 'Bad Request: Session ID required');
    const transport: NodeStreamableHTTPServerTransport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (session) => {
        transports.set(session, transport);
        sessions.add(session);
      },
      onsessionclosed: (session) => {
        transports.delete(session);
        sessions.delete(session);
      },
    });
    await buildServer().connect(transport);
    await transport.handleRequest(request, response, body);
  }, options);
  return {
    ...peer,
    sessions,
    close: async () => {
      await Promise.all([...transports.values()].map((transport) => transport.close()));
      await peer.close();
    },
  };
}

function buildServer(): McpServer {
  const server = new McpServer({ name: 'legacy-peer', version: '1.0.0' }, { capabilities: { tools: {} } });
  server.registerTool('echo', { description: 'Says it again', inputSchema: z.object({ text: z.string() }) }, ({ text }) => ({
    content: [{ type: 'text', text }],
  }));
  return server;
}

function refuse(response: Parameters<Parameters<typeof startPeer>[0]>[1], status: number, code: number, message: string): void {
  response
    .writeHead(status, { 'content-type': 'application/json' })
    .end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } }));
}
