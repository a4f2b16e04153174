/** Where NATS is and who we are there. The client takes no credentials out of a URL, and would connect as nobody without a word. */
export type NatsAddress = { readonly servers: string[]; readonly user?: string; readonly pass?: string; readonly token?: string };

/** @param urls one URL, or several of a cluster separated by commas; the first one's user counts */
export function natsAddress(urls: string): NatsAddress {
  const all = urls.split(',').map((text) => new URL(text.includes('://') ? text.trim() : `nats://${text.trim()}`));
  const servers = all.map((url) => `${url.protocol}//${url.host}`);
  const [first] = all;
  const user = decodeURIComponent(first?.username ?? '');
  const pass = decodeURIComponent(first?.password ?? '');
  if (!user) return { servers };
  return pass ? { servers, user, pass } : { servers, token: user };
}
