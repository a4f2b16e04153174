import { describe, expect, it } from '@jest/globals';
import { type Json, type JsonObject, MESSAGE_BUDGET_BYTES, type RunOutcome, RunSnapshot } from '@isthmus/protocol';
import { bytesOf, fittedOutcome, fittedPage, fittedSnapshot } from './budget.js';

const snapshotWith = (rest: Partial<RunSnapshot>): RunSnapshot => ({
  runId: '00000000-0000-7000-8000-000000000001',
  workflowId: 'w',
  status: 'completed',
  owner: { tenant: 't' },
  nodeStates: {},
  variables: {},
  inputs: {},
  engineVersion: '1',
  eventLogSchemaVersion: 2,
  workflowRevision: 1,
  ...rest,
});
const large = (kilobytes: number, letter = 'x') => letter.repeat(kilobytes * 1024);
const digest = (length: number, rest: JsonObject = {}) => ({ sha256: expect.stringMatching(/^[0-9a-f]{64}$/), length, ...rest });

describe('a snapshot', () => {
  it('that fits stays as it is', () => {
    const snapshot = snapshotWith({ variables: { a: large(400) } });
    expect(fittedSnapshot(snapshot, 0)).toBe(snapshot);
  });

  it('that does not fit shows its largest values by hash and size, and the others as they are', () => {
    const fitted = fittedSnapshot(
      snapshotWith({
        inputs: { text: large(300), n: 1 },
        variables: { text: large(300), n: 1, some: large(10) },
        outputs: { text: large(300), ok: true },
      }),
      0,
    );
    expect(fitted).toMatchObject({
      inputs: { text: digest(300 * 1024 + 2), n: 1 },
      variables: { text: digest(300 * 1024 + 2), n: 1, some: large(10) },
      outputs: { text: digest(300 * 1024 + 2), ok: true },
    });
    expect(RunSnapshot.parse(fitted)).toEqual(fitted);
    expect(bytesOf(fitted)).toBeLessThanOrEqual(MESSAGE_BUDGET_BYTES);
  });

  it.each<[string, Partial<RunSnapshot>]>([
    [
      'of a thousand middling values',
      { variables: Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`v${index}`, large(15)])) },
    ],
    ['of many small values', { variables: Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`v${index}`, large(1)])) }],
    ['of three-byte letters', { variables: { a: large(200, '語'), b: large(200, '語') } }],
    ['of outputs that are no object', { outputs: [large(600)] }],
    [
      'of what is to be approved',
      { interrupts: [{ interruptId: 'i', nodeId: 'n', kind: 'approval', key: 'n', payload: { artifactData: large(600), title: 'Go?' } }] },
    ],
  ])('fits in bytes: %s', (_what, rest) => {
    expect(bytesOf(fittedSnapshot(snapshotWith(rest), 0))).toBeLessThanOrEqual(MESSAGE_BUDGET_BYTES);
  });

  it('leaves room for what stands beside it', () => {
    expect(bytesOf(fittedSnapshot(snapshotWith({ variables: { a: large(300) } }), 400 * 1024))).toBeLessThanOrEqual(112 * 1024);
  });

  it('still tells that a value is not to be trusted', () => {
    const { variables } = fittedSnapshot(snapshotWith({ variables: { tool: { result: large(600), contentTrust: 'untrusted' } } }), 0);
    expect(variables['tool']).toMatchObject({ contentTrust: 'untrusted', sha256: expect.any(String) });
  });
});

describe('a page of a list', () => {
  it('is as much as fits, and one at least', () => {
    expect(fittedPage([1, 2, 3])).toEqual([1, 2, 3]);
    expect(fittedPage([])).toEqual([]);
    expect(fittedPage(Array.from({ length: 10 }, () => large(100, '語')))).toHaveLength(1);
    expect(fittedPage(Array.from({ length: 10 }, () => large(100)))).toHaveLength(5);
    expect(fittedPage([large(900), 'x'])).toHaveLength(1);
  });
});

describe('an outcome', () => {
  it('that fits stays as it is', () => {
    const outcome: RunOutcome = { is: 'completed', outputs: { text: large(500) }, contentTrust: 'trusted' };
    expect(fittedOutcome(outcome)).toBe(outcome);
  });

  it('gives outputs whole or says that they are too large, and how large', () => {
    const outcome: RunOutcome = { is: 'completed', outputs: { text: large(600) }, contentTrust: 'trusted' };
    expect(() => fittedOutcome(outcome)).toThrow(
      expect.objectContaining({ code: 'payload_too_large', details: { bytes: bytesOf(outcome), limit: MESSAGE_BUDGET_BYTES } }),
    );
  });

  it('that waits shows what is too large by hash and size', () => {
    const payload: { [key: string]: Json } = { artifactData: large(600), title: 'Go?' };
    const fitted = fittedOutcome({
      is: 'waiting',
      status: 'waiting-approval',
      interrupts: [{ interruptId: 'i', nodeId: 'n', kind: 'approval', key: 'n', payload }],
    });
    expect(fitted).toMatchObject({ is: 'waiting', interrupts: [{ payload: { artifactData: digest(600 * 1024 + 2), title: 'Go?' } }] });
  });
});
