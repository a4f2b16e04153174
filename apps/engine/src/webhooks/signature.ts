import { createHash, createHmac } from 'node:crypto';

export type Message = {
  readonly webhookId: string;
  /** The same on every attempt of one event to one subscription; no dots in it. */
  readonly messageId: string;
  /** Absent: a ping, which nobody may take for a delivery. */
  readonly eventType?: string;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly body: string;
};

const AGENT = 'openwop-webhook-dispatcher/0.1.0';

/** Everything that is sent besides the body: made here, so that nothing of who registered or started anything can slip in. */
export function headersOf(message: Message, secret: string): Record<string, string> {
  const { webhookId, messageId, eventType, timestamp, body } = message;
  const own = {
    'Webhook-Id': webhookId,
    ...(eventType !== undefined && { 'Event-Type': eventType }),
    Timestamp: String(timestamp),
    Signature: `sha256=${openwopSignature(secret, timestamp, body)}`,
    'Signature-Algorithm': 'v1',
  };
  return {
    'Content-Type': 'application/json',
    'User-Agent': AGENT,
    // The first family is on its way out, the second on its way in: equal. (families §5)
    ...prefixed('X-openwop-', own),
    ...prefixed('OpenWOP-', own),
    'webhook-id': messageId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${standardSignature(secret, messageId, timestamp, body)}`,
  };
}

const prefixed = (prefix: string, headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [`${prefix}${name}`, value]));

/** Keyed by the UTF-8 bytes of the secret as it was returned. (rulings, "Webhooks") */
export const openwopSignature = (secret: string, timestamp: number, body: string): string =>
  createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');

/** Standard Webhooks 1.0.0: keyed by what stands behind `whsec_` in base64; a secret of another form is its own bytes. */
export const standardSignature = (secret: string, messageId: string, timestamp: number, body: string): string =>
  createHmac('sha256', standardKey(secret)).update(`${messageId}.${timestamp}.${body}`).digest('base64');

const standardKey = (secret: string): Buffer => {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1];
  return encoded === undefined ? Buffer.from(secret, 'utf8') : Buffer.from(encoded, 'base64');
};

/** By which a subscriber and our logs mean the same secret without saying it. */
export const fingerprintOf = (secret: string): string => createHash('sha256').update(secret).digest('hex').slice(0, 8);
