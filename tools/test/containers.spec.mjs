import { describe, expect, it } from '@jest/globals';
import { chooseBackend, imageOf } from './containers.mjs';

describe('the backend of the tests', () => {
  const never = async () => false;
  const always = async () => true;

  it('is Docker where an engine answers, local processes elsewhere, and what the environment says before both', async () => {
    expect(await chooseBackend({}, always)).toBe('docker');
    expect(await chooseBackend({}, never)).toBe('process');
    expect(await chooseBackend({ ISTHMUS_TEST_BACKEND: 'process' }, always)).toBe('process');
    expect(await chooseBackend({ ISTHMUS_TEST_BACKEND: 'docker' }, never)).toBe('docker');
  });

  it('runs the images that compose names', async () => {
    expect(await imageOf('postgres')).toMatch(/^postgres:18/);
    expect(await imageOf('nats')).toMatch(/^nats:2\.12/);
  });
});
