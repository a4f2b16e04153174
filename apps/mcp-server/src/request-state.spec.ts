import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { EncryptJWT } from 'jose';
import { callerOf } from '@isthmus/testing';
import { type Continuation, openState, sealState, STATE_LIFETIME_MS, type StateRequest } from './request-state.js';

const key = { kid: '1', secret: new Uint8Array(randomBytes(32)) };
const at = Date.parse('2026-07-28T12:00:00Z');
const caller = callerOf();
const request: StateRequest = { caller, mount: 'default', method: 'tools/call', name: 'deploy', arguments: { b: 1, a: { d: 2, c: 3 } } };
const continuation: Continuation = { kind: 'answer', runId: 'r', interruptIds: ['r.i0'], keyed: false };
let state: string;
const open = (value: unknown = state, given: StateRequest = request, when = at) =>
  openState(async (kid) => (kid === key.kid ? key : undefined), given, value as never, when);

beforeAll(async () => {
  state = await sealState(key, request, continuation, at);
});

describe('a requestState', () => {
  it('brings back what was sealed', async () => {
    expect(await open()).toEqual({ is: 'ours', continuation });
  });

  it('is for the same arguments in any order of their members', async () => {
    expect(await open(state, { ...request, arguments: { a: { c: 3, d: 2 }, b: 1 } })).toMatchObject({ is: 'ours' });
  });

  it('shows nothing of what is in it', () => {
    const seen = state
      .split('.')
      .map((part) => Buffer.from(part, 'base64url').toString('latin1'))
      .join();
    for (const secret of [caller.tenant, caller.principal, 'deploy', 'r.i0']) expect(seen).not.toContain(secret);
  });

  it('is different each time', async () => {
    expect(await sealState(key, request, continuation, at)).not.toBe(state);
  });

  it.each<[string, Partial<StateRequest>]>([
    ['tenant', { caller: { ...caller, tenant: 'tenant-b' } }],
    ['workspace', { caller: { ...caller, workspace: 'other' } }],
    ['principal', { caller: { ...caller, principal: 'other' } }],
    ['mount', { mount: 'other' }],
    ['method', { method: 'prompts/get' }],
    ['tool', { name: 'destroy' }],
    ['arguments', { arguments: { b: 1, a: { d: 2, c: 4 } } }],
    ['arguments, one more', { arguments: { ...request.arguments, e: null } }],
  ])('is refused for another %s', async (_, other) => {
    expect(await open(state, { ...request, ...other })).toEqual({ is: 'refused', reason: 'request-state-of-another-request' });
  });

  it('is refused after ten minutes', async () => {
    expect(await open(state, request, at + STATE_LIFETIME_MS - 1_000)).toMatchObject({ is: 'ours' });
    expect(await open(state, request, at + STATE_LIFETIME_MS + 1_000)).toEqual({ is: 'refused', reason: 'request-state-expired' });
  });

  it.each([[''], [null], [5], [{}], ['x'], ['a.b.c.d.e'], ['....'], ['x'.repeat(100_000)]])('is not %j', async (value) => {
    expect(await open(value)).toMatchObject({ is: 'refused' });
  });

  it('is refused when anything is added to it', async () => {
    for (const altered of [`${state}x`, `${state}=`, ` ${state}`, `${state}\n`, `${state}-TAMPERED`, `${state}.`])
      expect(await open(altered)).toMatchObject({ is: 'refused' });
  });

  it('is refused when any one character of it is another, though base64url may decode to the same bytes', async () => {
    for (let index = 0; index < state.length; index++) {
      const other = state[index] === 'A' ? 'B' : 'A';
      const next = String.fromCharCode(state.charCodeAt(index) + 1);
      for (const char of [other, next, '']) {
        const altered = state.slice(0, index) + char + state.slice(index + 1);
        if (altered !== state) expect(await open(altered)).toMatchObject({ is: 'refused' });
      }
    }
  });

  it('of another key of the same name is refused', async () => {
    const forged = await sealState({ kid: '1', secret: new Uint8Array(randomBytes(32)) }, request, continuation, at);
    expect(await open(forged)).toEqual({ is: 'refused', reason: 'request-state-altered' });
  });

  it('of a key nobody knows is refused', async () => {
    expect(await open(await sealState({ ...key, kid: '2' }, request, continuation, at))).toEqual({
      is: 'refused',
      reason: 'request-state-not-ours',
    });
  });

  it('that another part of the host might seal with the key is not one', async () => {
    const other = await new EncryptJWT({ runId: 'r' })
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: '1' })
      .setExpirationTime('10m')
      .encrypt(key.secret);
    expect(await open(other)).toMatchObject({ is: 'refused' });
  });
});
