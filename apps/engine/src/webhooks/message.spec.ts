import { describe, expect, it } from '@jest/globals';
import { bodyOf, messageId } from './message.js';

describe('what a subscriber reads', () => {
  it('is type, run, workspace and the event as the log has it', () => {
    expect(JSON.parse(bodyOf('r', 3, 'w', ['node.completed', { nodeId: 'n' }, 'c', true, 0]))).toEqual({
      type: 'node.completed',
      runId: 'r',
      workspaceId: 'w',
      event: {
        eventId: 'r.3',
        runId: 'r',
        type: 'node.completed',
        payload: { nodeId: 'n' },
        timestamp: '1970-01-01T00:00:00.000Z',
        sequence: 3,
        nodeId: 'n',
        causationId: 'c',
        contentTrust: 'untrusted',
        schemaVersion: 1,
        engineVersion: '1',
      },
    });
  });
});

describe('the id of a message', () => {
  const key = { webhookId: 'wh_AbCdEfGhIjKlMnOpQrStUv', runId: '0190a000-0000-7000-8000-000000000001', sequence: 12 };

  it('is of the form Standard Webhooks allows, which has no dots', () => {
    expect(messageId(key)).toMatch(/^[A-Za-z0-9_-]{16,128}$/);
  });

  it('is the same on every attempt and another for every other event, run and subscription', () => {
    expect(messageId({ ...key })).toBe(messageId(key));
    const others = [
      { ...key, sequence: 1 },
      { ...key, runId: key.runId.replace(/1$/, '2') },
      { ...key, webhookId: 'wh_x' },
    ].map(messageId);
    expect(new Set([messageId(key), ...others]).size).toBe(4);
  });
});
