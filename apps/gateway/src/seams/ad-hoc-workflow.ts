import { type JsonObject, validationError, WorkflowDefinition } from '@isthmus/protocol';

type Loose = Readonly<Record<string, unknown>>;

/**
 * A workflow in the form suites send (`workflowId`, `nodeId`, `edgeId`) or in the document's own (`id`), bare or as `definition`.
 * Where both names stand the document's own wins. Whatever else is in it is judged by the document's schema. (spec/seams.md §4)
 * @throws WopError `validation_error`
 */
export function adHocWorkflow(body: Loose): WorkflowDefinition {
  const given = isObject(body['definition']) ? body['definition'] : body;
  const document = named(given, 'workflowId');
  const parsed = WorkflowDefinition.safeParse({
    name: document['id'],
    ...document,
    ...(Array.isArray(document['nodes']) && { nodes: document['nodes'].map((node: unknown) => named(node, 'nodeId')) }),
    ...(Array.isArray(document['edges']) && { edges: document['edges'].map((edge: unknown) => named(edge, 'edgeId')) }),
  });
  if (!parsed.success) throw validationError(parsed.error, 'workflow definition');
  return parsed.data;
}

/** With `id` instead of its other name. */
function named(given: unknown, alias: string): Loose {
  if (!isObject(given)) return given as Loose;
  const { [alias]: other, ...rest } = given;
  return other === undefined ? rest : { id: other, ...rest };
}

const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);
