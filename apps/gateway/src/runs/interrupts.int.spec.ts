import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Host, startHost } from '../fake-host.suite.js';

let host: Host;
beforeAll(async () => {
  host = await startHost();
});
afterAll(() => host.close());

/** As the outside has it: a token and nothing else. */
const ask = async (token: string, body?: unknown, headers: Record<string, string> = {}) => {
  const response = await fetch(`${host.url}/v1/interrupts/${token}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as Record<string, unknown> };
};
/** As long as real ones: longer than what routers take for a parameter by default. */
const tokenOf = (name: string): string => `${name}${'x'.repeat(600)}.${'y'.repeat(43)}`;

describe('a signed token', () => {
  it('shows the question and nothing else of the run, and is kept by no cache', async () => {
    host.suspend(host.makeRun(), tokenOf('look'));
    const { status, headers, body } = await ask(tokenOf('look'));
    expect([status, body]).toEqual([200, { kind: 'external-event', key: 'gate', data: { eventType: 'paid', correlation: { id: 1 } } }]);
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('answers once, and its repeat with a key is the same answer', async () => {
    const runId = host.makeRun();
    host.suspend(runId, tokenOf('pay'));
    const first = await ask(tokenOf('pay'), { resumeValue: { id: 1 } }, { 'idempotency-key': 'pay' });
    expect([first.status, first.body]).toEqual([200, { runId, nodeId: 'gate', status: 'running' }]);
    const again = await ask(tokenOf('pay'), { resumeValue: { id: 1 } }, { 'idempotency-key': 'pay' });
    expect([again.status, again.text, again.headers.get('openwop-idempotent-replay')]).toEqual([200, first.text, 'true']);
    const other = await ask(tokenOf('pay'), { resumeValue: { id: 2 } });
    expect([other.status, other.body['error']]).toEqual([409, 'interrupt_already_resolved']);
    expect((await ask(tokenOf('pay'))).status).toBe(409);
  });

  it('is dead when its run was cancelled', async () => {
    const runId = host.makeRun();
    host.suspend(runId, tokenOf('dead'));
    host.append(runId, ['run.cancelled']);
    for (const answer of [await ask(tokenOf('dead')), await ask(tokenOf('dead'), { resumeValue: 1 })])
      expect([answer.status, answer.body['error']]).toEqual([410, 'interrupt_gone']);
  });

  it.each(['garbage', tokenOf('nobody'), '%00', 'a%20b'])('that nobody minted is not found, and not repeated: %#', async (token) => {
    for (const answer of [await ask(token), await ask(token, { resumeValue: true })]) {
      expect([answer.status, answer.body['error']]).toEqual([404, 'interrupt_not_found']);
      expect(answer.text).not.toContain(token);
    }
  });
});

describe('an answer with a credential', () => {
  it('goes to the node it names, once for its key', async () => {
    const runId = host.makeRun();
    host.suspend(runId, 'whatever');
    const answer = () =>
      fetch(`${host.url}/v1/runs/${runId}/interrupts/gate`, {
        method: 'POST',
        headers: host.as('primary', { 'content-type': 'application/json', 'idempotency-key': 'answer' }),
        body: JSON.stringify({ resumeValue: { action: 'accept' } }),
      });
    const [first, again] = [await answer(), await answer()];
    expect([first.status, await first.json()]).toEqual([200, { runId, nodeId: 'gate', status: 'running' }]);
    expect([again.status, again.headers.get('openwop-idempotent-replay')]).toEqual([200, 'true']);
  });
});
