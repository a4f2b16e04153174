import { added, difference, divided, median, percentile, ratio, sumOfKnown, together } from './stats.mjs';

describe('a percentile', () => {
  const hundred = Array.from({ length: 100 }, (_, index) => index + 1);
  it.each([
    [0.5, 50],
    [0.99, 99],
    [1, 100],
    [0, 1],
  ])('%d of 1 to 100 is a value that was measured', (share, value) => {
    expect(percentile(hundred, share)).toBe(value);
  });

  it('of one value is that value, and of none is no number', () => {
    expect(percentile([7], 0.99)).toBe(7);
    expect(percentile([], 0.5)).toBeNaN();
  });
});

describe('measurements of one thing', () => {
  it('are taken together by their operations and times, not by the mean of their rates', () => {
    const one = { ops: 100, seconds: 1, latencies: [5, 1] };
    const other = { ops: 100, seconds: 3, latencies: [2, 9] };
    expect(together([one, other])).toEqual({ ops: 200, seconds: 4, rate: 50, p50: 2, p99: 9 });
  });

  it('of two sides are compared round by round', () => {
    expect(ratio([10, 100, 30], [100, 100, 100])).toEqual({ ratio: 0.3, spread: [0.1, 1] });
  });

  it('have a median that one odd round does not move', () => {
    expect(median([1, 1_000, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });
});

describe('counters', () => {
  it('are taken from each other, added up and shared out, by name', () => {
    expect(difference({ a: 1, b: 5 }, { a: 4, b: 5 })).toEqual({ a: 3, b: 0 });
    expect(added({ a: 1 }, { a: 2 })).toEqual({ a: 3 });
    expect(divided({ a: 3, b: 1 }, 2)).toEqual({ a: 1.5, b: 0.5 });
  });

  it('add up without those that are not known, and are unknown when none is', () => {
    expect(sumOfKnown([1, Number.NaN, 2])).toBe(3);
    expect(sumOfKnown([Number.NaN])).toBeNaN();
  });
});
