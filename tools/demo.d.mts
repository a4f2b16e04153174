import type { StackDescription } from './stack/host.mjs';

/** The demo's workflow: a remote tool call and an approval gate, exposed as a tool. */
export declare const RESEARCH: { readonly id: string };
/** The public remote MCP server `server-everything`, as a process of its own on a free port. */
export declare function startEverything(watch?: object, logFile?: string): Promise<{ url: string; stop(): Promise<void> }>;
export declare function runMainJob(
  stack: Pick<StackDescription, 'baseUrl' | 'mcpUrl' | 'keys'>,
  options: { everythingUrl: string; signal?: AbortSignal },
): Promise<void>;
