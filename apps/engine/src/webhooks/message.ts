import { type Json, type RunEvent, toRunEvent } from '@isthmus/protocol';

/** An event as the log has it. */
export type StoredEvent = [type: string, payload: Json, causationId: string | null, untrusted: boolean, at: number];

/** Which event, to which subscription. */
export type DeliveryKey = { readonly webhookId: string; readonly runId: string; readonly sequence: number };

/** Made of what it stands for: the same on every attempt, on any engine, after any crash. Dots would be read as separators. */
export const messageId = ({ webhookId, runId, sequence }: DeliveryKey): string => `msg_${webhookId}_${runId}_${sequence}`;

/** What a subscriber reads. The same bytes on every attempt: nothing in it but the log's own words. (rulings, "Webhooks") */
export function bodyOf(runId: string, sequence: number, workspaceId: string, stored: StoredEvent): string {
  const [type, payload, causationId, untrusted, at] = stored;
  const event: RunEvent = toRunEvent(runId, sequence, new Date(at), {
    type,
    payload,
    causationId,
    contentTrust: untrusted ? 'untrusted' : null,
  });
  return JSON.stringify({ type, runId, workspaceId, event });
}
