import { judge, verdict } from './marks.mjs';

const mark = (figure, bound) =>
  judge({ figure }, [{ name: 'x', unit: '', ...bound, of: (results) => results.figure, where: () => 'there' }])[0];

describe('a mark', () => {
  it.each([
    [250, { atLeast: 250 }, 'reached'],
    [200, { atLeast: 250 }, 'MISSED by 20.0 %'],
    [15, { atMost: 15 }, 'reached'],
    [18, { atMost: 15 }, 'MISSED by 20.0 %'],
    [undefined, { atMost: 15 }, 'not measured here'],
    [Number.NaN, { atLeast: 1 }, 'not measured here'],
  ])('of %p against %j is %s', (figure, bound, words) => {
    expect(verdict(mark(figure, bound))).toBe(words);
  });

  it('that is missed says where it goes', () => {
    expect(mark(200, { atLeast: 250 }).where).toBe('there');
    expect(mark(250, { atLeast: 250 }).where).toBeUndefined();
  });
});

describe('the marks of the issue', () => {
  const cpu = { gateway: 1, authz: 0.01, engine: 2, 'mcp-client': 0, 'mcp-server': 0, postgres: 1, nats: 0.5, client: 0.49 };
  const side = { rate: 100, p50: 30, cpu, ratio: 0.1, ours: { cpu } };
  const counted = { writes: 2, fsyncs: 4, walKb: 30, fullPages: 1 };
  const both = (value) => ({ 1: value, 16: value });
  const results = {
    runs: both(side),
    calls: both(side),
    lists: both(side),
    postgres: both(counted),
    floor: { commits: both(200) },
    memory: { idle: { gateway: 400, engine: 400, total: 800 } },
    cores: 2,
    othersShare: 0.37,
  };

  it('each say where it goes', () => {
    expect(judge(results).map(({ where }) => where)).toEqual([
      '4.51 ms of CPU (engine 2.00, gateway 1.00, postgres 1.00, nats 0.50) and 0.49 of the client: 2 cores allow 400 runs/s, and other processes took 37.0 %',
      '10.0 ms are commits one after the other on this disk; 4.51 ms of CPU (engine 2.00, gateway 1.00, postgres 1.00, nats 0.50)',
      '4.51 ms of CPU (engine 2.00, gateway 1.00, postgres 1.00, nats 0.50)',
      '4.51 ms of CPU (engine 2.00, gateway 1.00, postgres 1.00, nats 0.50)',
      '2.00 transactions that write',
      '1.00 full pages',
      'gateway 400, engine 400',
    ]);
  });
});
