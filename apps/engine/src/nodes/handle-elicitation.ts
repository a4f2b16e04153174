import { JsonObject } from '@isthmus/protocol';
import { z } from 'zod';
import { declinedOr } from './clarification-gate.js';
import { clarificationOf, Elicitation, elicitResultOf } from './elicitation.js';
import { failed, pureNode } from './node-type.js';

/**
 * `core.openwop.mcp.handle-elicitation`: asks what a form asks; outputs `{action, content?}`. The form comes from input
 * `request`, else from config (the published schema is empty, suites register it with `{message, requestedSchema}`).
 */
export const handleElicitation = pureNode({
  role: 'side-effect',
  config: z.union([Elicitation, z.looseObject({ message: z.string().optional() })]),
  inputs: z.looseObject({ request: JsonObject.optional() }),
  run: ({ nodeId, isRouted, answer, untrusted }, config, inputs) => {
    const form = Elicitation.safeParse(inputs.request ?? config);
    if (!form.success)
      return failed('validation_error', `Node "${nodeId}" needs {message, requestedSchema} in its config or in input "request".`);
    const answered = answer(nodeId);
    if (answered === undefined) return { is: 'suspended', requests: [{ request: clarificationOf(nodeId, form.data, {}), untrusted }] };
    const result = elicitResultOf(answered);
    return declinedOr(nodeId, isRouted, result, result);
  },
});
