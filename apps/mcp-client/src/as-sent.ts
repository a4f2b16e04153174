import { type Client, specTypeSchemas } from '@modelcontextprotocol/client';

type Schema = (typeof specTypeSchemas)['CallToolResult' | 'ListToolsResult'];
type Validate = (value: unknown) => { value: unknown } | { issues: readonly unknown[] };

/** Checks a value against `schema` and gives it on as it came: the SDK's own parsing drops members it does not know. */
function unaltered(schema: Schema): unknown {
  const standard = schema['~standard'];
  const validate: Validate = (value) => {
    const { issues } = standard.validate(value);
    return issues ? { issues } : { value };
  };
  return { '~standard': { ...standard, validate } };
}

const SCHEMAS: Readonly<Record<string, unknown>> = {
  'tools/call': unaltered(specTypeSchemas.CallToolResult),
  'tools/list': unaltered(specTypeSchemas.ListToolsResult),
};

type AnyRequest = (request: { method: string; params?: Record<string, unknown> }, ...rest: unknown[]) => Promise<unknown>;

/**
 * Makes `client` give results of tools as the server sent them, and look at each result before the SDK acts on it.
 * The SDK's methods ask through `request`, which is where an instance can be told otherwise.
 */
export function asSent(client: Client, onResult: (method: string, result: unknown) => Promise<void> | void): Client {
  const ask = client.request.bind(client) as AnyRequest;
  const request: AnyRequest = async (message, ...rest) => {
    const schema = Object.hasOwn(SCHEMAS, message.method) ? SCHEMAS[message.method] : undefined;
    const result = await (schema ? ask(message, schema, rest.at(-1)) : ask(message, ...rest));
    await onResult(message.method, result);
    return result;
  };
  return Object.assign(client, { request: request as typeof client.request });
}
