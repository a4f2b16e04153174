import type { Egress } from '@isthmus/egress';
import { WopError } from '@isthmus/protocol';
import type { WebhookSettings } from './settings.js';

/**
 * Refuses a target that this host may not call, by its spelling and by what its name means now; what it means later is judged at
 * every delivery. (authz.md §10)
 * @throws WopError validation_error, webhook_url_rejected
 */
export async function checkTarget(text: string, egress: Egress, { plainHttp, verify }: WebhookSettings): Promise<void> {
  const url = new URL(text);
  if (url.username || url.password || url.hash)
    throw new WopError('validation_error', 'The body is not valid at "url": it may hold no user name, password or fragment.', {
      path: 'url',
    });
  if (url.protocol !== 'https:' && !(plainHttp && url.protocol === 'http:')) throw rejected('scheme', 'must be https');
  // Where nobody is asked first, a name need not be known yet.
  const refusal = verify ? await egress.check(url.hostname) : egress.refusalOf(url.hostname);
  if (refusal) throw rejected('address', 'must lead to a public address');
}

export const rejected = (reason: string, why: string): WopError =>
  new WopError('webhook_url_rejected', `This webhook target is not one this host may call: it ${why}.`, { reason });
