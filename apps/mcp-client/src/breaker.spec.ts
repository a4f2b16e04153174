import { describe, expect, it } from '@jest/globals';
import { FakeClock } from '@isthmus/testing';
import { Breakers } from './breakers.js';

const ORIGIN = 'http://127.0.0.1:1';

function rig() {
  const clock = new FakeClock();
  const breakers = new Breakers(clock);
  const fail = (times: number, everyMs = 0) => {
    for (let time = 0; time < times; time += 1) {
      breakers.failed(ORIGIN);
      clock.advance(everyMs);
    }
  };
  return { clock, breakers, fail };
}

describe('the breaker', () => {
  it('leaves an origin alone after five failures within ten seconds, and no other', () => {
    const { breakers, fail } = rig();
    fail(4);
    expect(breakers.admits(ORIGIN)).toBe(true);
    fail(1);
    expect(breakers.admits(ORIGIN)).toBe(false);
    expect(breakers.admits('http://127.0.0.1:2')).toBe(true);
  });

  it('does not add up failures that are further apart', () => {
    const { breakers, fail } = rig();
    fail(20, 2_600);
    expect(breakers.admits(ORIGIN)).toBe(true);
  });

  it('forgets failures when the origin answers', () => {
    const { breakers, fail } = rig();
    fail(4);
    breakers.answered(ORIGIN);
    fail(4);
    expect(breakers.admits(ORIGIN)).toBe(true);
  });

  it('lets one request a second through to look, and all once that one was answered', () => {
    const { clock, breakers, fail } = rig();
    fail(5);
    clock.advance(999);
    expect(breakers.admits(ORIGIN)).toBe(false);
    clock.advance(1);
    expect([breakers.admits(ORIGIN), breakers.admits(ORIGIN)]).toEqual([true, false]);
    breakers.failed(ORIGIN);
    clock.advance(999);
    expect(breakers.admits(ORIGIN)).toBe(false);
    clock.advance(1);
    expect(breakers.admits(ORIGIN)).toBe(true);
    breakers.answered(ORIGIN);
    expect([breakers.admits(ORIGIN), breakers.admits(ORIGIN)]).toEqual([true, true]);
  });

  it('looks again although the one who looked never came back', () => {
    const { clock, breakers, fail } = rig();
    fail(5);
    clock.advance(1_000);
    expect(breakers.admits(ORIGIN)).toBe(true);
    clock.advance(1_000);
    expect(breakers.admits(ORIGIN)).toBe(true);
  });
});
