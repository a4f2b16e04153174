import { nearestNamed, selfTimes } from './self-times.mjs';

const frame = (functionName, url = '') => ({ functionName, url, lineNumber: 0, columnNumber: 0 });
const profile = {
  nodes: [
    { id: 1, callFrame: frame('(root)'), children: [2, 3] },
    { id: 2, callFrame: frame('(idle)') },
    { id: 3, callFrame: frame('append', 'file:///run-log.js'), children: [4] },
    { id: 4, callFrame: frame('write', 'node:net') },
  ],
  samples: [2, 3, 4, 4],
  timeDeltas: [500, 100, 200, 200],
};

describe('a CPU profile', () => {
  it('is busy where it is not idle', () => {
    expect(selfTimes(profile)).toMatchObject({ all: 1_000, busy: 500 });
  });

  it('puts the time of a built-in down to whoever called it', () => {
    const { us, stack } = selfTimes(profile).frames.find((each) => each.stack[0].functionName === 'write');
    expect([us, nearestNamed(stack).functionName]).toEqual([400, 'append']);
  });
});
