import { describe, expect, it } from '@jest/globals';
import { methodsOf, nothingAt, pathOf } from './known-paths.js';

describe('paths nothing answers', () => {
  it('tells which methods a known path has', () => {
    expect(methodsOf('/v1/host/isthmus/mounts/everything')).toEqual(['PUT', 'GET', 'HEAD', 'DELETE']);
    expect(methodsOf('/mcp')).toEqual(['POST']);
    expect(methodsOf('/v1/nowhere')).toBeUndefined();
    expect(methodsOf('/v1/runs/r')).toEqual(['GET', 'HEAD']);
    expect(methodsOf('/v1/runs/r:fork')).toEqual(['POST']);
    expect(methodsOf('/v1/runs/r:diff')).toEqual(['GET', 'HEAD']);
    expect(methodsOf('/v1/runs:bulk-cancel')).toEqual(['POST']);
  });

  it.each([
    ['/runs', 'validation_error'],
    ['/runs/018f/events', 'validation_error'],
    ['/host/isthmus/workflows', 'validation_error'],
    ['/v1/runs', 'method_not_allowed'],
    ['/v1/run', 'not_found'],
    ['/v1/v1/runs', 'not_found'],
    ['/v1/runs/', 'not_found'],
    ['/', 'not_found'],
    ['/v1xwell-known/openwop', 'not_found'],
  ])('says of %s: %s', (path, code) => {
    expect(nothingAt(path).code).toBe(code);
  });

  it('cuts query and fragment off', () => {
    expect(pathOf('/v1/runs?x=1#y')).toBe('/v1/runs');
    expect(pathOf('/v1/runs')).toBe('/v1/runs');
  });
});
