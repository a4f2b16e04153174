import type { InterruptRequest, Json, JsonObject } from '@isthmus/protocol';
import { z } from 'zod';

/** What an MCP peer asks of a person: `elicitation/create` in form mode. */
export const Elicitation = z.looseObject({
  message: z.string().max(10_000),
  requestedSchema: z.looseObject({
    type: z.literal('object').default('object'),
    properties: z.record(z.string(), z.looseObject({})).default({}),
    required: z.array(z.string()).optional(),
  }),
});
export type Elicitation = z.infer<typeof Elicitation>;

/**
 * A clarification with one question per property of the form. The form itself goes along in `metadata.mcp`, so that a mount can
 * show it again as it was. (mcp-integration.md: elicitation becomes a clarification, `metadata.mcp.inputRequestKey`)
 */
export function clarificationOf(key: string, { message, requestedSchema }: Elicitation, mcp: JsonObject): InterruptRequest {
  const { properties, required = [] } = requestedSchema;
  const questions = Object.entries(properties).map(([id, schema]) => ({
    id,
    question: text(schema['title']) ?? text(schema['description']) ?? message,
    schema: schema as JsonObject,
    required: required.includes(id),
  }));
  const asked = questions.length > 0 ? questions : [{ id: 'confirm', question: message, schema: { type: 'boolean' }, required: false }];
  return {
    kind: 'clarification',
    key,
    data: { contextType: 'mcp-elicitation', message, questions: asked as unknown as Json },
    metadata: { mcp: { ...mcp, message, requestedSchema: requestedSchema as unknown as Json } },
  };
}

/** How the clarification was answered, as the `ElicitResult` the peer waits for: always an explicit action. */
export function elicitResultOf(answer: Json): JsonObject {
  const { action, answers } = answer as { action: string; answers?: JsonObject };
  return action === 'accept' ? { action, content: answers ?? {} } : { action };
}

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
