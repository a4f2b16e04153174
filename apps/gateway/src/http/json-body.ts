import { isUtf8 } from 'node:buffer';
import { type Json, jsonProblem, WopError } from '@isthmus/protocol';

/** The JSON value of a request body, or why it is refused; no bytes at all are no body. (traps.md 20) */
export function parseJsonBody(bytes: Buffer): Json | undefined {
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) throw new WopError('validation_error', 'The body is not valid UTF-8.');
  const value = parse(bytes.toString('utf8'));
  const problem = jsonProblem(value);
  if (problem) throw new WopError('validation_error', `The body cannot be taken: ${problem}.`);
  return value;
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    // V8's message repeats a piece of the body, which may be a secret.
    throw new WopError('validation_error', 'The body is not valid JSON.');
  }
}
