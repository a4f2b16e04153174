import { describe, expect, it } from '@jest/globals';
import { fingerprintOf, headersOf, openwopSignature, standardSignature } from './signature.js';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const BODY = '{"type":"run.completed","runId":"r"}';
const MESSAGE = { webhookId: 'wh_1', messageId: 'msg_wh_1_r_3', eventType: 'run.completed', timestamp: 1757100000, body: BODY };

describe('signatures', () => {
  it('are what openssl says', () => {
    expect(openwopSignature(SECRET, 1757100000, BODY)).toBe('e90aeadfbb67e918330aab20d66bc9dbdc0ae0396d091e7b6cf4d11d73f8e47a');
    expect(fingerprintOf(SECRET)).toBe('96ad2ccd');
  });

  it('are those of the vector that Standard Webhooks publishes, and take a secret of any other form as it is', () => {
    expect(standardSignature(SECRET, 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1614265330, '{"test": 2432232314}')).toBe(
      'g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    );
    expect(standardSignature('plain-secret-of-a-client', 'msg_x', 1, '{}')).toBe('lMELQMdkmz29LUcSc8/C5PJ3nfyPoBuRrwwm9QMI8nM=');
  });
});

describe('headers of a delivery', () => {
  it('are these, in three families, and no others', () => {
    expect(headersOf(MESSAGE, SECRET)).toEqual({
      'Content-Type': 'application/json',
      'User-Agent': 'openwop-webhook-dispatcher/0.1.0',
      'X-openwop-Webhook-Id': 'wh_1',
      'X-openwop-Event-Type': 'run.completed',
      'X-openwop-Timestamp': '1757100000',
      'X-openwop-Signature': 'sha256=e90aeadfbb67e918330aab20d66bc9dbdc0ae0396d091e7b6cf4d11d73f8e47a',
      'X-openwop-Signature-Algorithm': 'v1',
      'OpenWOP-Webhook-Id': 'wh_1',
      'OpenWOP-Event-Type': 'run.completed',
      'OpenWOP-Timestamp': '1757100000',
      'OpenWOP-Signature': 'sha256=e90aeadfbb67e918330aab20d66bc9dbdc0ae0396d091e7b6cf4d11d73f8e47a',
      'OpenWOP-Signature-Algorithm': 'v1',
      'webhook-id': 'msg_wh_1_r_3',
      'webhook-timestamp': '1757100000',
      'webhook-signature': `v1,${standardSignature(SECRET, 'msg_wh_1_r_3', 1757100000, BODY)}`,
    });
  });

  it('name no event on a ping, so that nobody takes it for a delivery', () => {
    const { eventType: _, ...ping } = MESSAGE;
    expect(Object.keys(headersOf(ping, SECRET)).filter((name) => name.includes('Event-Type'))).toEqual([]);
  });
});
