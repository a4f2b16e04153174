import { format, table } from './table.mjs';

describe('a table', () => {
  it('has its names to the left and its figures to the right', () => {
    expect(
      table(
        ['', 'runs/s', 'p50'],
        [
          ['one', 250.4, 1],
          ['sixteen', undefined, 12.34],
        ],
      ),
    ).toBe(['           runs/s   p50', '  ───────  ──────  ────', '  one         250  1.00', '  sixteen       –  12.3'].join('\n'));
  });
});

describe('a figure', () => {
  it.each([
    [0, '0'],
    [0.0123, '0.012'],
    [0.5, '0.50'],
    [9.876, '9.88'],
    [98.76, '98.8'],
    [987.6, '988'],
    [Number.NaN, '–'],
    [undefined, '–'],
    ['text', 'text'],
  ])('%p is written %s', (value, text) => {
    expect(format(value)).toBe(text);
  });
});
