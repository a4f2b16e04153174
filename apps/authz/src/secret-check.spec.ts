import { describe, expect, it } from '@jest/globals';
import { BELLS } from '@isthmus/protocol';
import { FakeClock } from '@isthmus/testing';
import { mintKey, parseKey } from './keys.js';
import { SecretCheck } from './secret-check.js';
import { SecretHasher } from './secret-hasher.js';

/** Counts what is verified; each verification ends when `release` is called, or at once. */
class FakeHasher extends SecretHasher {
  readonly verified: string[] = [];
  readonly held: (() => void)[] = [];
  isHolding = false;
  override async hash(secret: string): Promise<string> {
    return `hash of ${secret}`;
  }
  override async verify(hashed: string, secret: string): Promise<boolean> {
    this.verified.push(hashed);
    if (this.isHolding) await new Promise<void>((resolve) => this.held.push(resolve));
    return hashed === `hash of ${secret}`;
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

function make() {
  const hasher = new FakeHasher();
  const clock = new FakeClock();
  const check = new SecretCheck(hasher, clock);
  const token = mintKey();
  const secret = parseKey(token)?.secret ?? '';
  const known = { tenant: 'acme', secretHash: `hash of ${secret}` };
  return { hasher, clock, check, token, secret, known };
}

describe('checking a secret', () => {
  it('remembers a match for half a minute', async () => {
    const { check, clock, hasher, token, secret, known } = make();
    expect(await check.isHolder(token, secret, known)).toBe(true);
    clock.advance(29_999);
    expect(await check.isHolder(token, secret, known)).toBe(true);
    expect(hasher.verified).toHaveLength(1);
    clock.advance(2);
    expect(await check.isHolder(token, secret, known)).toBe(true);
    expect(hasher.verified).toHaveLength(2);
  });

  it('forgets the matches of a tenant that the bell names, and only those', async () => {
    const { check, hasher, token, secret, known } = make();
    const other = mintKey();
    const others = parseKey(other)?.secret ?? '';
    const ask = async () => {
      await check.isHolder(token, secret, known);
      await check.isHolder(other, others, { tenant: 'globex', secretHash: `hash of ${others}` });
    };
    await ask();
    check.forget(BELLS.revoked.subject('acme'));
    await ask();
    expect(hasher.verified).toEqual([known.secretHash, `hash of ${others}`, known.secretHash]);
  });

  it('hashes for a key that nobody has as it does for a wrong secret', async () => {
    const { check, hasher, token, secret } = make();
    expect(await check.isHolder(token, secret, undefined)).toBe(false);
    expect(await check.isHolder(token, secret, { tenant: 'acme', secretHash: 'hash of another' })).toBe(false);
    expect(hasher.verified).toEqual([expect.stringMatching(/^hash of .{43}$/), 'hash of another']);
  });

  it('never takes the hash that stands for nobody as a match', async () => {
    const { check, token } = make();
    const nobodys = (await check.nobodysHash()).slice('hash of '.length);
    expect(await check.isHolder(token, nobodys, undefined)).toBe(false);
  });

  it('refuses a repeated wrong key without hashing again, for a moment', async () => {
    const { check, clock, hasher, token, secret } = make();
    const wrong = { tenant: 'acme', secretHash: 'hash of another' };
    await check.isHolder(token, secret, wrong);
    clock.advance(4_999);
    await check.isHolder(token, secret, wrong);
    expect(hasher.verified).toHaveLength(1);
    clock.advance(2);
    await check.isHolder(token, secret, wrong);
    expect(hasher.verified).toHaveLength(2);
  });

  it('knows a key from the moment it is stored, even if it was refused just before', async () => {
    const { check, token, secret, known } = make();
    expect(await check.isHolder(token, secret, undefined)).toBe(false);
    expect(await check.isHolder(token, secret, known)).toBe(true);
  });

  it('verifies a key once for all who ask at the same time', async () => {
    const { check, hasher, token, secret, known } = make();
    const answers = await Promise.all(Array.from({ length: 200 }, () => check.isHolder(token, secret, known)));
    expect(answers.every(Boolean)).toBe(true);
    expect(hasher.verified).toHaveLength(1);
  });

  it('verifies two at once, lets 64 wait and tells the next that it is busy', async () => {
    const { check, hasher, secret, known } = make();
    hasher.isHolding = true;
    const flood = Array.from({ length: 66 }, () => check.isHolder(mintKey(), secret, known));
    await turn();
    expect(hasher.verified).toHaveLength(2);
    await expect(check.isHolder(mintKey(), secret, known)).rejects.toMatchObject({ code: 'service_unavailable' });
    hasher.isHolding = false;
    for (const release of hasher.held) release();
    expect(await Promise.all(flood)).toHaveLength(66);
  });

  it('lets a key that is remembered pass while the queue is full', async () => {
    const { check, hasher, token, secret, known } = make();
    await check.isHolder(token, secret, known);
    hasher.isHolding = true;
    const flood = Array.from({ length: 66 }, () => check.isHolder(mintKey(), 'wrong', known));
    await turn();
    expect(await check.isHolder(token, secret, known)).toBe(true);
    hasher.isHolding = false;
    for (const release of hasher.held) release();
    await Promise.all(flood);
  });
});
