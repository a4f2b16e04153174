import { APPROVAL_ACTIONS, ApprovalData, ClarificationData, type Json, type JsonObject, type OpenInterrupt } from '@isthmus/protocol';
import { isObject } from './read-message.js';
import { schemaProblem } from '@isthmus/schemas';

/** An interrupt as a form that a client can show, or why it cannot be one. */
export type Form = { readonly is: 'form'; readonly request: JsonObject } | { readonly is: 'unrepresentable'; readonly because: string };

/** What an answer to a form means to the run. */
export type Resolution =
  | { readonly is: 'resume'; readonly resumeValue: Json }
  /** The client closed the form without deciding: the call is given up. */
  | { readonly is: 'cancel' }
  | { readonly is: 'malformed'; readonly because: string };

type Schemas = { readonly [name: string]: JsonObject };
type Kind = {
  readonly form: (interrupt: OpenInterrupt) => { message: string; schema: JsonObject } | string;
  readonly accept: (content: JsonObject, interrupt: OpenInterrupt) => Json;
  readonly decline: (interrupt: OpenInterrupt) => Json;
};

/**
 * Interrupts that MCP's form mode can carry: flat objects of primitives, and no secrets. URL mode is the way for the others.
 * (spec/mcp.md §1.6, spec/authz.md §7.3)
 */
const KINDS: { readonly [kind: string]: Kind } = {
  approval: {
    form: ({ payload }) => {
      const data = ApprovalData.safeParse(payload);
      return data.success ? approvalForm(data.data) : 'the approval cannot be read';
    },
    accept: ({ action, comment }) => ({
      action: action ?? null,
      ...WITH[String(action)]?.(comment),
      ...(comment !== undefined && { comment }),
    }),
    decline: () => ({ action: 'reject' }),
  },
  clarification: {
    form: ({ payload, metadata }) => {
      const data = ClarificationData.safeParse(payload);
      return data.success ? (passedOnForm(metadata) ?? clarificationForm(data.data)) : 'the questions cannot be read';
    },
    accept: (answers) => ({ action: 'accept', answers }),
    decline: () => ({ action: 'decline', answers: {} }),
  },
};

/** What an action needs besides its name. `edit-accept` needs a whole document, which a form cannot hold. */
const WITH: { readonly [action: string]: (comment: Json | undefined) => JsonObject } = {
  refine: (comment) => ({ refineFeedback: { scope: 'whole', ...(comment !== undefined && { text: comment }) } }),
};
const IN_A_FORM = new Set<string>(APPROVAL_ACTIONS.filter((action) => action !== 'edit-accept'));

export function formOf(interrupt: OpenInterrupt): Form {
  const kind = kindOf(interrupt);
  if (!kind) return { is: 'unrepresentable', because: 'it is not a question to a person' };
  const form = kind.form(interrupt);
  if (typeof form === 'string') return { is: 'unrepresentable', because: form };
  return {
    is: 'form',
    request: { method: 'elicitation/create', params: { mode: 'form', message: form.message, requestedSchema: form.schema } },
  };
}

/** The client's answer to the form of `interrupt`. Content that the form does not allow changes nothing. */
export function resolutionOf(interrupt: OpenInterrupt, response: Json): Resolution {
  const kind = kindOf(interrupt);
  const form = kind?.form(interrupt);
  if (!kind || !form || typeof form === 'string') return { is: 'malformed', because: 'the interrupt cannot be answered by a form' };
  if (!isObject(response)) return { is: 'malformed', because: 'a response is an object with an action' };
  const { action, content = {} } = response;
  if (action === 'decline') return { is: 'resume', resumeValue: kind.decline(interrupt) };
  // A question that another MCP server asked can be handed its cancel; any other question is simply left unanswered.
  if (action === 'cancel')
    return isPassedOn(interrupt) ? { is: 'resume', resumeValue: { action: 'cancel', answers: {} } } : { is: 'cancel' };
  if (action !== 'accept') return { is: 'malformed', because: 'the action is accept, decline or cancel' };
  if (!isObject(content)) return { is: 'malformed', because: 'the content of an accepted form is an object' };
  const problem = schemaProblem(form.schema, content);
  if (problem === 'unusable') return { is: 'malformed', because: 'the form cannot be checked' };
  if (problem) return { is: 'malformed', because: `${problem.path ? `"${problem.path}"` : 'the content'} ${problem.message}` };
  return { is: 'resume', resumeValue: kind.accept(known(content, form.schema), interrupt) };
}

const kindOf = ({ kind }: OpenInterrupt): Kind | undefined => (Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined);
const isPassedOn = ({ metadata }: OpenInterrupt): boolean => isObject(metadata?.['mcp']);

/** Members the form does not ask for are ignored. */
const known = (content: JsonObject, schema: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(content).filter(([key]) => Object.hasOwn(schema['properties'] as JsonObject, key)));

function approvalForm({ title, description, actions, artifactData }: ApprovalData): { message: string; schema: JsonObject } | string {
  const offered = actions.filter((action) => IN_A_FORM.has(action));
  if (offered.length === 0) return 'its decisions need more than a form holds';
  const shown =
    artifactData === undefined ? undefined : typeof artifactData === 'string' ? artifactData : JSON.stringify(artifactData, null, 2);
  return {
    message: [title, description, shown]
      .filter((part) => part !== undefined && part !== '')
      .join('\n\n')
      .slice(0, MAX_MESSAGE),
    schema: {
      type: 'object',
      properties: {
        action: { type: 'string', title: 'Decision', enum: offered },
        comment: { type: 'string', title: 'Comment', maxLength: 10_000 },
      },
      required: ['action'],
    },
  };
}

const MAX_MESSAGE = 8_000;

function clarificationForm({ questions }: ClarificationData): { message: string; schema: JsonObject } | string {
  const asked = Object.fromEntries(
    questions.map(({ id, question, schema }) => [id, { title: question.slice(0, 200), type: 'string', ...schema }]),
  );
  const required = questions.filter((question) => question['required'] !== false).map(({ id }) => id);
  return formWith(questions.map(({ question }) => question).join('\n'), asked, required);
}

/** The form of another MCP server, shown as that server wrote it; the run has it as questions, one per property. */
function passedOnForm(metadata: JsonObject | undefined): { message: string; schema: JsonObject } | string | undefined {
  const { message, requestedSchema } = isObject(metadata?.['mcp']) ? metadata['mcp'] : {};
  if (typeof message !== 'string' || !isObject(requestedSchema) || !isObject(requestedSchema['properties'])) return undefined;
  const { properties, required } = requestedSchema;
  return formWith(message, properties, Array.isArray(required) ? required.filter((name): name is string => typeof name === 'string') : []);
}

function formWith(message: string, asked: JsonObject, required: readonly string[]): { message: string; schema: JsonObject } | string {
  const properties = flatProperties(asked);
  if (typeof properties === 'string') return properties;
  return { message: message.slice(0, MAX_MESSAGE), schema: { type: 'object', properties, ...(required.length > 0 && { required }) } };
}

const COMMON = ['type', 'title', 'description', 'default'] as const;
/** What a property of a form may say, by its type. What else a schema says, the run checks itself. */
const PROPERTY: { readonly [type: string]: readonly string[] } = {
  string: [...COMMON, 'minLength', 'maxLength', 'format', 'enum', 'enumNames', 'oneOf'],
  number: [...COMMON, 'minimum', 'maximum'],
  integer: [...COMMON, 'minimum', 'maximum'],
  boolean: COMMON,
  array: [...COMMON, 'minItems', 'maxItems', 'items'],
};
const FORMATS = new Set<Json | undefined>(['email', 'uri', 'date', 'date-time']);

/** @returns why they are no form, as a part of a sentence */
function flatProperties(properties: JsonObject): Schemas | string {
  const flat: { [name: string]: JsonObject } = {};
  for (const [name, schema] of Object.entries(properties)) {
    const property = isObject(schema) ? flatProperty(schema) : 'it is no schema';
    if (typeof property === 'string') return property;
    flat[name] = property;
  }
  return flat;
}

function flatProperty(schema: JsonObject): JsonObject | string {
  const type = schema['type'] ?? (Array.isArray(schema['enum']) || isChoices(schema['oneOf']) ? 'string' : undefined);
  if (schema['writeOnly'] === true || schema['format'] === 'password' || schema['sensitive'] === true)
    return 'it asks for a secret, which never goes through a form';
  if (typeof type !== 'string' || !Object.hasOwn(PROPERTY, type)) return 'it asks for more than a flat form holds';
  if (type === 'array' && !isMultipleChoice(schema['items'])) return 'it asks for more than a flat form holds';
  if (schema['oneOf'] !== undefined && !isChoices(schema['oneOf'])) return 'it asks for more than a flat form holds';
  const kept = (PROPERTY[type] as readonly string[]).filter(
    (key) => schema[key] !== undefined && (key !== 'format' || FORMATS.has(schema[key])),
  );
  return { ...Object.fromEntries(kept.map((key) => [key, schema[key] as Json])), type };
}

const isText = (value: Json | undefined): boolean => typeof value === 'string';
const isChoices = (value: Json | undefined): boolean =>
  Array.isArray(value) && value.every((choice: Json) => isObject(choice) && isText(choice['const']));
const isMultipleChoice = (items: Json | undefined): boolean =>
  isObject(items) && ((Array.isArray(items['enum']) && items['enum'].every(isText)) || isChoices(items['anyOf']));

/** Did the client of this request say that it can show forms? An empty object means just that. (§1.2) */
export function canShowForms(capabilities: JsonObject): boolean {
  const { elicitation } = capabilities;
  return isObject(elicitation) && (isObject(elicitation['form']) || elicitation['url'] === undefined);
}
