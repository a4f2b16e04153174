import { expect, it } from '@jest/globals';
import { comparedAuthority } from './authority.js';

const before = { scopes: ['runs:read', 'runs:create'], waiting: ['a', 'b'] };

it.each([
  ['nothing', before, false, false],
  [
    'a scope that was lost and a run that came to wait, which is not what is looked for',
    { scopes: ['runs:read'], waiting: ['a', 'b', 'c'] },
    false,
    false,
  ],
  ['a scope more', { ...before, scopes: [...before.scopes, 'runs:cancel'] }, true, false],
  ['a run that waits no more', { ...before, waiting: ['b'] }, false, true],
] as const)('tells what moved: %s', (_, after, scopesWidened, approvalAdvanced) => {
  expect(comparedAuthority(before, after)).toEqual({ scopesWidened, approvalAdvanced });
});
