import { describe, expect, it } from '@jest/globals';
import { PrimitiveSchemaDefinitionSchema } from '@modelcontextprotocol/core';
import type { JsonObject, OpenInterrupt } from '@isthmus/protocol';
import { canShowForms, formOf, resolutionOf } from './elicitation.js';
import { approval, clarification } from './engine.suite.js';

const open = (interrupt: Omit<OpenInterrupt, 'interruptId'>): OpenInterrupt => ({ ...interrupt, interruptId: 'r.i0' });
type Params = {
  readonly message: string;
  readonly requestedSchema: { readonly properties: { readonly [name: string]: JsonObject }; readonly required: string[] };
};
const paramsOf = (interrupt: OpenInterrupt): Params => {
  const form = formOf(interrupt);
  if (form.is !== 'form') throw new Error(form.because);
  return form.request['params'] as unknown as Params;
};

describe('an approval', () => {
  const gate = open(
    approval('gate', {
      title: 'Deploy?',
      description: 'To production.',
      artifactData: { env: 'prod' },
      actions: ['accept', 'reject', 'refine', 'edit-accept'],
    }),
  );

  it('is a form of its decisions that shows what is decided on', () => {
    expect(formOf(gate)).toMatchObject({ is: 'form', request: { method: 'elicitation/create', params: { mode: 'form' } } });
    const { message, requestedSchema } = paramsOf(gate);
    expect(message).toContain('Deploy?');
    expect(message).toContain('To production.');
    expect(message).toContain('"env": "prod"');
    expect(requestedSchema.properties['action']?.['enum']).toEqual(['accept', 'reject', 'refine']);
    expect(requestedSchema.required).toEqual(['action']);
  });

  it.each([
    [
      { action: 'accept', content: { action: 'accept' } },
      { is: 'resume', resumeValue: { action: 'accept' } },
    ],
    [
      { action: 'accept', content: { action: 'reject', comment: 'no' } },
      { is: 'resume', resumeValue: { action: 'reject', comment: 'no' } },
    ],
    [
      { action: 'accept', content: { action: 'refine', comment: 'shorter' } },
      { is: 'resume', resumeValue: { action: 'refine', comment: 'shorter', refineFeedback: { scope: 'whole', text: 'shorter' } } },
    ],
    [
      { action: 'accept', content: { action: 'accept', voter: 'somebody else' } },
      { is: 'resume', resumeValue: { action: 'accept' } },
    ],
    [{ action: 'decline' }, { is: 'resume', resumeValue: { action: 'reject' } }],
    [{ action: 'cancel' }, { is: 'cancel' }],
  ])('%j', (response, resolution) => {
    expect(resolutionOf(gate, response as never)).toEqual(resolution);
  });

  it.each([
    [null],
    ['accept'],
    [12345],
    [{}],
    [{ action: 'approve' }],
    [{ action: 'accept' }],
    [{ action: 'accept', content: [] }],
    [{ action: 'accept', content: { action: 'edit-accept' } }],
    [{ action: 'accept', content: { action: 'accept', comment: 5 } }],
  ])('is not decided by %j', (response) => {
    expect(resolutionOf(gate, response as never)).toMatchObject({ is: 'malformed' });
  });

  it('whose every decision needs more than a form holds is no form', () => {
    expect(formOf(open(approval('gate', { actions: ['edit-accept'] })))).toMatchObject({ is: 'unrepresentable' });
  });
});

describe('a clarification', () => {
  const questions: JsonObject[] = [
    { id: 'name', question: 'What is your name?' },
    { id: 'age', question: 'How old?', schema: { type: 'integer', minimum: 0 }, required: false },
    { id: 'colours', question: 'Which?', schema: { type: 'array', items: { type: 'string', enum: ['red', 'green'] }, pattern: 'x' } },
    { id: 'size', question: 'Size?', schema: { oneOf: [{ const: 's', title: 'Small' }] } },
    { id: 'mail', question: 'Mail?', schema: { type: 'string', format: 'email' } },
    { id: 'sure', question: 'Sure?', schema: { type: 'boolean', default: true } },
  ];
  const asked = open(clarification('ask', questions));

  it('is a form with one property per question, each of them a primitive that MCP knows', () => {
    const { requestedSchema: schema } = paramsOf(asked);
    expect(Object.keys(schema.properties)).toEqual(['name', 'age', 'colours', 'size', 'mail', 'sure']);
    expect(schema.properties['name']).toEqual({ type: 'string', title: 'What is your name?' });
    expect(schema.properties['colours']).not.toHaveProperty('pattern');
    expect(schema.required).toEqual(['name', 'colours', 'size', 'mail', 'sure']);
    for (const property of Object.values(schema.properties)) expect(PrimitiveSchemaDefinitionSchema.safeParse(property).success).toBe(true);
  });

  it('takes answers by question id and ignores others', () => {
    const content = { name: 'Ann', colours: ['red'], size: 's', mail: 'a@example.com', sure: false };
    expect(resolutionOf(asked, { action: 'accept', content: { ...content, extra: 1 } })).toEqual({
      is: 'resume',
      resumeValue: { action: 'accept', answers: content },
    });
  });

  it('is declined explicitly', () => {
    expect(resolutionOf(asked, { action: 'decline' })).toEqual({ is: 'resume', resumeValue: { action: 'decline', answers: {} } });
    expect(resolutionOf(asked, { action: 'cancel' })).toEqual({ is: 'cancel' });
  });

  it('does not take an answer that its form does not allow', () => {
    expect(resolutionOf(open(clarification('ask', questions.slice(0, 1))), { action: 'accept', content: { name: 12345 } })).toMatchObject({
      is: 'malformed',
    });
    expect(resolutionOf(open(clarification('ask', questions.slice(0, 1))), { action: 'accept', content: {} })).toMatchObject({
      is: 'malformed',
    });
  });

  it.each([
    ['nested', { type: 'object', properties: {} }],
    ['a list of objects', { type: 'array', items: { type: 'object' } }],
    ['a password', { type: 'string', format: 'password' }],
    ['write-only', { type: 'string', writeOnly: true }],
    ['of two types', { type: ['string', 'null'] }],
    ['a choice of schemas', { type: 'string', oneOf: [{ minLength: 3 }] }],
  ])('that is %s never goes through a form', (_, schema) => {
    expect(formOf(open(clarification('ask', [{ id: 'a', question: '?', schema }])))).toMatchObject({ is: 'unrepresentable' });
  });
});

describe('a question that another MCP server asked', () => {
  const requestedSchema = {
    type: 'object',
    properties: { user: { type: 'string', title: 'User', minLength: 1 }, ok: { type: 'boolean' } },
    required: ['user'],
  };
  const passedOn = open(
    clarification(
      'call',
      [
        { id: 'user', question: 'User' },
        { id: 'ok', question: 'Who?' },
      ],
      { mcp: { inputRequestKey: 'k', message: 'Who are you?', requestedSchema } },
    ),
  );

  it('is shown as that server wrote it', () => {
    expect(formOf(passedOn)).toEqual({
      is: 'form',
      request: { method: 'elicitation/create', params: { mode: 'form', message: 'Who are you?', requestedSchema } },
    });
  });

  it('can be handed accept, decline and cancel alike', () => {
    expect(resolutionOf(passedOn, { action: 'accept', content: { user: 'ann' } })).toEqual({
      is: 'resume',
      resumeValue: { action: 'accept', answers: { user: 'ann' } },
    });
    expect(resolutionOf(passedOn, { action: 'decline' })).toEqual({ is: 'resume', resumeValue: { action: 'decline', answers: {} } });
    expect(resolutionOf(passedOn, { action: 'cancel' })).toEqual({ is: 'resume', resumeValue: { action: 'cancel', answers: {} } });
  });
});

describe('a client can show forms', () => {
  it.each([
    [{}, false],
    [{ elicitation: true }, false],
    [{ elicitation: {} }, true],
    [{ elicitation: { form: {} } }, true],
    [{ elicitation: { form: {}, url: {} } }, true],
    [{ elicitation: { url: {} } }, false],
  ])('when it declares %j: %s', (capabilities, can) => {
    expect(canShowForms(capabilities as never)).toBe(can);
  });
});
