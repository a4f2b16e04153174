import type { IncomingHttpHeaders } from 'node:http';

type Allowed = { readonly PUBLIC_URL: string; readonly ALLOWED_HOSTS: readonly string[]; readonly ALLOWED_ORIGINS: readonly string[] };

const LOCAL: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * May this Host, and the page of this Origin if there is one, speak to the mount? Without this a web page could reach a local
 * host through the browser, by DNS rebinding. No Origin means no browser. (MCP streamable HTTP, security)
 */
export const mayAsk = (headers: Pick<IncomingHttpHeaders, 'host' | 'origin'>, allowed: Allowed): boolean =>
  isHostAllowed(headers.host, allowed) && (headers.origin === undefined || isOriginAllowed(headers.origin, allowed));

function isHostAllowed(host: string | undefined, allowed: Allowed): boolean {
  const url = parse(`http://${host ?? ''}`);
  // Whatever else the parser would read into it (a user, a path) makes it no host.
  if (!host || !url || url.username || url.pathname !== '/' || url.search || url.hash) return false;
  if (LOCAL.has(url.hostname)) return true;
  const own = new URL(allowed.PUBLIC_URL);
  return own.hostname === url.hostname || allowed.ALLOWED_HOSTS.some((entry) => entry === host.toLowerCase() || entry === url.hostname);
}

function isOriginAllowed(origin: string, allowed: Allowed): boolean {
  const url = parse(origin);
  if (!url || url.origin === 'null' || url.origin !== origin.toLowerCase()) return false;
  return LOCAL.has(url.hostname) || new URL(allowed.PUBLIC_URL).origin === url.origin || allowed.ALLOWED_ORIGINS.includes(url.origin);
}

function parse(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}
