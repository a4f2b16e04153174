import { describe, expect, it } from '@jest/globals';
import { parseStreamMode } from './stream-modes.js';

const shown = (text: string | undefined, types: readonly string[]): string[] => {
  const mode = parseStreamMode(text);
  return mode.is === 'events' ? types.filter((type) => mode.shows({ type })) : ['the state'];
};
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

  it('shows no event in messages, for no node speaks to a model', () => {
    expect(shown('messages', TYPES)).toEqual([]);
  });

  it('unites the modes of a list', () => {
    expect(shown(' updates , debug,updates ', TYPES)).toEqual(TYPES);
    expect(shown('messages,updates', TYPES)).toEqual(shown('updates', TYPES));
  });

  it.each(['values', ' values', 'values,values'])('shows the state in %j', (text) => {
    expect(parseStreamMode(text)).toEqual({ is: 'values' });
  });

  it.each(['updates,values', 'values,messages', 'updates,nonsense', '', ',', 'values,', 'Updates', '__proto__', 'toString'])(
    'refuses %j and tells what is served',
    (text) => {
      expect(() => parseStreamMode(text)).toThrow(
        expect.objectContaining({ code: 'unsupported_stream_mode', details: { supported: ['values', 'updates', 'messages', 'debug'] } }),
      );
    },
  );
});
