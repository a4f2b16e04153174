import { ROUTES } from '@isthmus/protocol';
import { describe, expect, it } from '@jest/globals';
import { ask } from './ask.js';

const RUN = '0190a000-0000-7000-8000-000000000001';
const given = (more: object = {}) => ({ params: {}, query: {}, body: undefined, idempotencyKey: undefined, ...more });
const code = (expected: string) => expect.objectContaining({ code: expected });

describe('what a request asks for', () => {
  it('is what its route says', () => {
    const asked = ask(ROUTES.pollEvents, given({ params: { runId: RUN }, query: { lastSequence: '7', other: 'x' } }));
    expect(asked.query).toMatchObject({ lastSequence: 7 });
  });

  it('finds nothing under a name that nothing can have', () => {
    expect(() => ask(ROUTES.getRun, given({ params: { runId: 'not-a-uuid' } }))).toThrow(code('not_found'));
    expect(() => ask(ROUTES.getRun, given({ params: { runId: 'x'.repeat(200) } }))).toThrow(code('not_found'));
    expect(() => ask(ROUTES.getWorkflow, given({ params: { workflowId: 'a b' } }))).toThrow(code('not_found'));
  });

  it('teaches the grammar of names to who makes something', () => {
    expect(() => ask(ROUTES.putWorkflow, given({ params: { workflowId: 'a b' }, body: {} }))).toThrow(code('validation_error'));
  });

  it.each([
    [{ lastSequence: '-1' }],
    [{ lastSequence: '1.5' }],
    [{ lastSequence: '' }],
    [{ lastSequence: 'x' }],
    [{ lastSequence: ['1', '2'] }],
    [{ timeout: '0' }],
    [{ timeout: '61' }],
  ])('refuses the query %j', (query) => {
    expect(() => ask(ROUTES.pollEvents, given({ params: { runId: RUN }, query }))).toThrow(code('validation_error'));
  });

  it('refuses text in a query that no database takes', () => {
    expect(() => ask(ROUTES.listRuns, given({ query: { tag: 'a\u0000' } }))).toThrow(code('validation_error'));
  });

  it('refuses members the body does not have, without repeating a name that looks like a secret', () => {
    expect(() => ask(ROUTES.createRun, given({ body: { workflowId: 'w', 'sk-abcdef123456': 1 } }))).toThrow(
      expect.objectContaining({ code: 'validation_error', message: expect.not.stringContaining('sk-abcdef') }),
    );
  });

  it('lets a body be left out where all of it is optional, and nowhere else', () => {
    expect(ask(ROUTES.cancelRun, given({ params: { runId: RUN } })).body).toBeUndefined();
    expect(() => ask(ROUTES.createRun, given())).toThrow(code('validation_error'));
  });

  it('refuses a body where none belongs', () => {
    expect(() => ask(ROUTES.deleteMount, given({ params: { serverId: 's' }, body: {} }))).toThrow(code('validation_error'));
  });
});
