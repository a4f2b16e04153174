// What we are compared with, in a process of its own: a bare server of the MCP SDK, as its users write one, and a NATS responder.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { connect } from '@nats-io/transport-node';
import { z } from 'zod';
import { LISTED } from './subjects.mjs';
import { serve } from './worker.mjs';

/** A fresh one per request, with its schemas: that is how the SDK asks for it. */
function echoServer() {
  const server = new McpServer({ name: 'bare-echo', version: '1.0.0' });
  server.registerTool('echo', { description: 'Says it again', inputSchema: z.object({ text: z.string() }) }, ({ text }) => ({
    content: [{ type: 'text', text: JSON.stringify({ text }) }],
    structuredContent: { text },
  }));
  return server;
}

function listServer() {
  const server = new McpServer({ name: 'bare-list', version: '1.0.0' });
  for (const { name, description } of LISTED) {
    const inputSchema = z.object({
      query: z.string().min(1).max(500).describe('What to look for'),
      limit: z.int().min(1).max(100).default(10).describe('How many to answer with'),
      order: z.enum(['newest', 'oldest', 'best']).optional().describe('Which come first'),
      tags: z.array(z.string()).optional().describe('Only with all of these'),
    });
    server.registerTool(name, { description, inputSchema }, () => ({ content: [] }));
  }
  return server;
}

function listen(factory) {
  const handle = toNodeHandler(createMcpHandler(factory));
  const server = createServer((request, response) => {
    handle(request, response).catch((error) => response.destroy(error));
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`));
  });
}

serve({
  start: async ({ natsUrl }) => {
    const connection = await connect({ servers: natsUrl });
    connection.subscribe('bench.echo', { callback: (_error, message) => void message.respond(message.data) });
    await connection.flush();
    return { echo: await listen(echoServer), list: await listen(listServer) };
  },
});
