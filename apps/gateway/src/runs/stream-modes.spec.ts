import { describe, expect, it } from '@jest/globals';
import { parseStreamMode } from './stream-modes.js';

const shown = (mode: string | undefined, types: readonly string[]): string[] => types.filter((type) => parseStreamMode(mode)({ type }));
const TYPES = [
  'run.started',
  'node.started',
  'node.completed',
  'variable.changed',
  'interrupt.requested',
  'acme.custom',
  'constructor',
  'run.completed',
];

describe('stream modes', () => {
  it('shows updates by default', () => {
    expect(shown(undefined, TYPES)).toEqual(['run.started', 'node.completed', 'interrupt.requested', 'run.completed']);
    expect(shown('updates', TYPES)).toEqual(shown(undefined, TYPES));
  });

  it('shows everything in debug, vendor events too', () => {
    expect(shown('debug', TYPES)).toEqual(TYPES);
  });

  it('unites the modes of a list', () => {
    expect(shown(' updates , debug,updates ', TYPES)).toEqual(TYPES);
  });

  it.each(['values', 'messages', 'updates,values', 'updates,nonsense', '', ',', 'Updates', '__proto__', 'toString'])(
    'refuses %j and tells what is served',
    (mode) => {
      expect(() => parseStreamMode(mode)).toThrow(
        expect.objectContaining({ code: 'unsupported_stream_mode', details: { supported: ['updates', 'debug'] } }),
      );
    },
  );
});
