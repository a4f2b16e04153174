import { parseOptions } from './options.mjs';

describe('the flags of npm start', () => {
  it('run the main job and serve when there are none', () => {
    expect(parseOptions([])).toEqual({ isHelp: false, isOnce: false, isVerbose: false, mode: 'demo', replicas: {} });
  });

  it('make --conformance two engines and two mcp-servers, without the main job', () => {
    expect(parseOptions(['--conformance'])).toMatchObject({ mode: 'conformance', replicas: { engine: 2, 'mcp-server': 2 } });
  });

  it('let --replicas have the last word', () => {
    expect(parseOptions(['--conformance', '--replicas', 'engine=3,authz=2']).replicas).toEqual({ engine: 3, 'mcp-server': 2, authz: 2 });
  });

  it.each([
    [['--bogus'], /^Unknown flag "--bogus": use /],
    [['serve'], /^Unknown flag "serve": use /],
    [['--replicas', 'engine=0'], /not "engine=0"\.$/],
    [['--replicas', 'gateway=2'], /one gateway/],
    [['--replicas', 'nobody=2'], /not "nobody=2"\.$/],
    [['--replicas'], /argument missing/],
  ])('refuse %j in one sentence', (argv, sentence) => {
    expect(() => parseOptions(argv)).toThrow(sentence);
  });
});
