import { type Host, type HostOptions, startHost } from '../../tools/stack/host.mjs';

/** A whole host of its own for one test file, and every line its services said. */
export type Stack = Host & { readonly logged: readonly string[] };

/** How long a host may take to come up where many things run at once. */
export const START_MS = 120_000;

/** Loopback may be called, so that remote MCP servers can stand beside the test. */
export async function startStack(options: HostOptions = {}): Promise<Stack> {
  const logged: string[] = [];
  const host = await startHost({ mode: 'demo', onLine: (process, _stream, text) => logged.push(`${process.name} ${text}`), ...options });
  return Object.assign(host, { logged });
}

/** Lines of services (not of Postgres or NATS) that speak of a fault. */
export const faultsIn = ({ logged }: Stack): string[] => logged.filter((line) => /^[\w-]+ \{.*"level":"(error|fatal)"/.test(line));
