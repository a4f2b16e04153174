/** The mount that `/mcp` itself is. */
export const DEFAULT_MOUNT = 'default';

/** Which mount a request is for: `/mcp` is the default one, `/mcp/{mount}` another. */
export function mountOf(url: string): string {
  const [, name] = /^\/mcp\/([A-Za-z0-9._~-]{1,128})\/?$/.exec(new URL(url, 'http://mount').pathname) ?? [];
  return name ?? DEFAULT_MOUNT;
}
